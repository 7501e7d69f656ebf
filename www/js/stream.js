// Reads the one stream of a page: server-sent events by fetch(), which can send a header, slow the sender down, and name the
// event to continue after. A cut connection continues at the offset after the last byte; a hidden page has no connection.

const FIRST_PAUSE = 250, LONGEST_PAUSE = 8000;

// The callback on(event, data, id) may return a promise: the stream waits for it before it reads on.
export function createStream(api, path, on, onState) {
	let lastId = null, abort = null, pause = FIRST_PAUSE, timer = 0, closed = false;

	async function take(event, data, id) {
		if (id !== null)
			lastId = id;
		await on(event, JSON.parse(data), id);
	}

	async function read(body, mine) {
		const reader = body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "", event = "message", data = "", id = null;

		for (;;) {
			const {value, done} = await reader.read();
			if (done)
				return;
			rest += value;
			let from = 0, nl;
			while ((nl = rest.indexOf("\n", from)) >= 0) {
				const line = rest.slice(from, nl);
				from = nl + 1;
				if (line === "") {
					if (abort !== mine)
						return; // aborted: the remaining lines belong to another shell, or come again
					if (data !== "")
						await take(event, data, id);
					event = "message";
					data = "";
					id = null;
				} else if (line.startsWith("data: ")) {
					data += line.slice(6);
				} else if (line.startsWith("event: ")) {
					event = line.slice(7);
				} else if (line.startsWith("id: ")) {
					id = line.slice(4);
				}
			}
			rest = rest.slice(from);
			pause = FIRST_PAUSE;
		}
	}

	async function run() {
		const mine = abort = new AbortController();
		let why = "the connection ended", refused = false;

		onState("connecting");
		try {
			const headers = {Accept: "text/event-stream"};
			if (lastId !== null)
				headers["Last-Event-ID"] = lastId;
			const r = await api.request(path(), {headers, signal: mine.signal});
			onState("live");
			await read(r.body, mine);
		} catch (e) {
			why = e.message;
			refused = e.status >= 400 && e.status < 500 && e.status !== 429;
		}
		if (abort !== mine || closed)
			return;
		mine.abort(); // the request continues even if reading has failed
		abort = null;
		if (refused) { // asking again would not help
			onState("refused", why);
			return;
		}
		onState("lost", why);
		timer = setTimeout(start, pause * (0.5 + Math.random()));
		pause = Math.min(2 * pause, LONGEST_PAUSE);
	}

	function stop(state) {
		const was = abort;

		clearTimeout(timer);
		timer = 0;
		abort = null;
		if (was)
			was.abort();
		if (state)
			onState(state);
	}

	function start() {
		clearTimeout(timer);
		timer = 0;
		if (!closed && !document.hidden && abort === null)
			void run();
	}

	function seen() {
		pause = FIRST_PAUSE;
		if (document.hidden)
			stop("paused");
		else
			start();
	}

	document.addEventListener("visibilitychange", seen);
	addEventListener("online", start);
	return {
		start,
		// starts again from the first byte, for another shell
		restart() {
			stop();
			lastId = null;
			start();
		},
		close() {
			closed = true;
			stop();
			document.removeEventListener("visibilitychange", seen);
			removeEventListener("online", start);
		},
	};
}
