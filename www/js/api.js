// Sends requests to one sandbox. `base` is the page's own address, or that of a sandbox of the fleet: all paths are
// relative to it, so that any prefix works. The token belongs to one sign-in, and is worth nothing without its cookie.

export class Refused extends Error {
	constructor(status, detail) {
		super(detail);
		this.status = status;
	}
}

// keyHeader: name of the header that carries the key, once, at the sign-in.
export function createApi(base, keyHeader = "X-Session-API-Key") {
	const url = new URL(base, location.href);
	const store = "handrail-page " + url.pathname;
	let ended = () => {};

	function headers(more) {
		return Object.assign({"X-Handrail-Page": localStorage.getItem(store) || "-"}, more);
	}

	// Returns the response, or throws a refusal with the server's message.
	async function request(path, options = {}) {
		const r = await fetch(new URL("v1/" + path, url), Object.assign({
			cache: "no-store", credentials: "same-origin", redirect: "error", referrerPolicy: "no-referrer",
		}, options, {headers: headers(options.headers)})).catch((e) => {
			throw e.name === "AbortError" ? e : new Error("The server cannot be reached (" + e.message + ").");
		});

		if (r.ok)
			return r;
		let detail = r.statusText || "status " + r.status;
		try {
			detail = (await r.json()).detail || detail;
		} catch {
			// no JSON: a proxy in front of the server has answered
		}
		if (r.status === 403 && options.ends !== false)
			void me().catch((e) => e.status === 403 && ended());
		throw new Refused(r.status, String(detail));
	}

	async function get(path) {
		return (await request(path)).json();
	}

	async function post(path, body, options = {}) {
		return (await request(path, Object.assign({
			method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"},
		}, options))).json();
	}

	function where() {
		return {path: url.pathname, port: url.port, secure: url.protocol === "https:"};
	}

	async function signIn(key, look) {
		// a header's value consists of bytes
		const bytes = String.fromCharCode(...new TextEncoder().encode(key));
		const answer = await post("signin", Object.assign(where(), {look}), {
			headers: {"Content-Type": "application/json", [keyHeader]: bytes}, ends: false,
		});

		localStorage.setItem(store, answer.token);
		return answer;
	}

	async function signOut() {
		try {
			await post("signout", where(), {ends: false});
		} finally {
			localStorage.removeItem(store);
		}
	}

	async function me() {
		return (await request("me", {ends: false})).json();
	}

	return {request, get, post, signIn, signOut, me, onEnded: (f) => { ended = f; }};
}

// Returns "?name=value&..." for the names that have a value.
export function query(values) {
	const q = new URLSearchParams(Object.entries(values).filter(([, v]) => v !== null && v !== undefined));

	return "?" + q;
}
