// Runs the console of a fleet: the sign-in, the one stream of events, and the views that it feeds.
import {createAlerts} from "../alerts.js";
import {createApi, query} from "../api.js";
import {h, plain} from "../dom.js";
import {createSignIn} from "../signin.js";
import {createStream} from "../stream.js";
import {createTabs} from "../tabs.js";
import {createCapacity} from "./capacity.js";
import {createEvents} from "./events.js";
import {createKeys} from "./keys.js";
import {createPools} from "./pools.js";
import {createSandboxes} from "./sandboxes.js";

const SOON_MS = 300; // events within this time cause one request of each list
const STATES = {connecting: "connecting…", live: "live", lost: "reconnecting…", paused: "paused", refused: "not live"};
const WORDS = {
	title: "handrail fleet", label: "Key of the service", wrong: "That is no key of this service.",
	where: ["Keys begin with hrk_. ", h("code", {}, "handrail fleet keys make NAME"), " makes one."],
};
const api = createApi(new URL(".", location.href), "X-API-Key");

function createConsole(me, leave) {
	const admin = me.scope === "admin", acts = me.rights === "act";
	const place = {api, admin, acts: acts && me.scope !== "read", operates: acts && admin, key: me.key,
		pages: me.pages, pauses: me.pauses};
	const state = h("span", {class: "state", role: "status"});
	const note = h("p", {class: "note bad", role: "alert"});
	const reload = h("button", {type: "button", onclick: () => void refresh()}, "Reload");
	const events = createEvents(), sandboxes = createSandboxes(place, say, listed), views = [sandboxes];
	const tabs = [{id: "sandboxes", title: "Sandboxes", element: sandboxes.element, shown: sandboxes.shown, hidden: sandboxes.hidden}];
	let timer = 0, listing = false; // listing: the note is about a list that could not be read

	function say(e) {
		note.textContent = e ? plain(e.message, 500) : "";
		listing = false;
	}

	// Shows why a list could not be read, and clears that note once it could. The note of a failed action stays.
	function listed(e) {
		if (e || listing)
			say(e);
		listing = Boolean(e);
	}

	if (admin)
		for (const [id, title, create] of [["pools", "Pools", createPools], ["keys", "Keys", createKeys]]) {
			const view = create(place, say);
			views.push(view);
			tabs.push({id, title, element: view.element});
		}
	tabs.push({id: "events", title: "Events", element: events.element});
	if (admin) {
		const capacity = createCapacity(place);
		const alerts = createAlerts((n) => bar.mark("alerts", n > 0 ? `Alerts (${n})` : "Alerts"));

		views.push(capacity, {refresh: async () => alerts.server({alerts: await api.get("alerts")})});
		tabs.push({id: "capacity", title: "Capacity", element: capacity.element, shown: capacity.shown, hidden: capacity.hidden},
			{id: "alerts", title: "Alerts", element: alerts.element});
	}
	const bar = createTabs("Views", tabs);

	async function refresh() {
		let why = null;

		for (const view of views) {
			try {
				await view.refresh();
			} catch (e) {
				why = e;
			}
		}
		listed(why);
	}

	function soon() {
		if (timer === 0)
			timer = setTimeout(() => {
				timer = 0;
				void refresh();
			}, SOON_MS);
	}

	const element = h("div", {class: "page"},
		h("header", {}, h("h1", {}, "handrail fleet"), h("span", {class: "dir"}, plain(me.name)), state,
			h("span", {class: "rights"}, acts ? "" : "watch only"), reload,
			h("button", {type: "button", onclick: leave}, "Sign out")),
		note, h("main", {}, bar.bar, bar.element));
	const stream = createStream(api, () => "events" + query({all: admin || null}),
		(event, data) => {
			if (event === "gap")
				events.gap();
			else if (event === "message")
				events.happened(data);
			soon();
		},
		(s, why) => {
			state.textContent = STATES[s];
			state.className = "state " + s;
			state.title = why || "";
			element.dataset.stream = s;
			if (s === "live")
				soon(); // events were missed while there was no stream
		});

	return {
		element,
		start() {
			bar.show("sandboxes");
			stream.start();
			void refresh();
		},
		close() {
			clearTimeout(timer);
			bar.close();
			stream.close();
		},
	};
}

let page = null;

function ask(why) {
	const form = createSignIn(api, open, WORDS);

	if (page)
		page.close();
	page = null;
	document.body.replaceChildren(form.element);
	if (why)
		form.say(why);
	form.focus();
}

async function leave() {
	try {
		await api.signOut();
		ask("");
	} catch (e) {
		ask("This browser has forgotten the sign-in, but the service may still accept it: " + e.message);
	}
}

function open(me) {
	page = createConsole(me, leave);
	document.body.replaceChildren(page.element);
	page.start();
}

async function begin() {
	try {
		open(await api.me());
	} catch (e) {
		ask(e.status === 403 ? "" : e.message);
	}
}

api.onEnded(() => ask("The sign-in is over."));
void begin();
