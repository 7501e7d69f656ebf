// Runs the page of one sandbox: the sign-in, the one stream, and the views that it feeds.
import {createAlerts} from "./alerts.js";
import {createApi, query} from "./api.js";
import {createBrowser} from "./browser.js";
import {createCells} from "./cells.js";
import {createCommands} from "./commands.js";
import {createConfirm} from "./confirm.js";
import {foreign, h, plain} from "./dom.js";
import {createFiles} from "./files.js";
import {createLog} from "./log.js";
import {createMetrics} from "./metrics.js";
import {createNetwork} from "./network.js";
import {createPlugins} from "./plugins.js";
import {createShells} from "./shells.js";
import {createSignIn} from "./signin.js";
import {createStream} from "./stream.js";
import {createTabs} from "./tabs.js";
import {createTerminal} from "./terminal.js";

const api = createApi(new URL(".", location.href));

const STATES = {connecting: "connecting…", live: "live", lost: "reconnecting…", paused: "paused", refused: "refused"};

function createPage(me, leave) {
	let name = "default", working = "/";
	const session = () => query({session: name === "default" ? null : name});
	const rights = () => me.rights;
	const confirm = createConfirm(), place = {api, session, rights, confirm};
	const terminal = createTerminal(place), commands = createCommands();
	const plugins = createPlugins(), metrics = createMetrics(), files = createFiles(place), log = createLog(place);
	const browser = createBrowser(place), shells = createShells(api, {rights, choose, begun: () => terminal.type(), say: (why) => terminal.say(why)});
	const cells = createCells(api, {show: commands.cells, isRunning: commands.isRunning});
	const network = createNetwork(place);
	const alerts = createAlerts((n) => tabs.mark("alerts", n > 0 ? `Alerts (${n})` : "Alerts"));
	const state = h("span", {class: "state", role: "status"}), dir = foreign("", {class: "dir mono"});
	const out = h("button", {type: "button", onclick: leave, hidden: me.expires_in === null}, "Sign out");
	const tabs = createTabs("Views", [
		{id: "shell", title: "Shell", element: h("div", {class: "shell"}, terminal.element, commands.element),
			shown: () => terminal.opened()},
		{id: "files", title: "Files", element: files.element, shown: () => files.shown(working)},
		{id: "browser", title: "Browser", element: browser.element, shown: browser.shown, hidden: browser.hidden},
		{id: "plugins", title: "Plugins", element: plugins.element},
		{id: "metrics", title: "Metrics", element: metrics.element, shown: metrics.shown, hidden: metrics.hidden},
		{id: "alerts", title: "Alerts", element: alerts.element},
		{id: "network", title: "Network", element: network.element, shown: network.shown, hidden: network.hidden},
		{id: "log", title: "Log", element: log.element, shown: log.shown, hidden: log.hidden},
	]);
	const element = h("div", {class: "page"},
		h("header", {}, h("h1", {title: "The sandbox"}, foreign(me.name)), shells.element, dir, state,
			h("span", {class: "rights"}, me.rights === "act" ? "" : "watch only"), out),
		h("main", {}, tabs.bar, tabs.element), confirm.element);

	const on = {
		output: (d) => terminal.output(d),
		gap: (d) => terminal.gap(d),
		shell(d) {
			terminal.state(d.session);
			shells.state(d.session, d.commands);
			commands.state(d.commands);
			working = d.session.working_dir || "/";
			dir.textContent = plain(working);
			document.title = (d.session.running ? "▸ " : "") + plain(me.name, 80) + " – handrail";
		},
		server(d) {
			plugins.server(d);
			cells.server(d);
			alerts.server(d);
			shells.server(d);
		},
		log: (d) => log.told(d),
		sample(d) {
			metrics.sample(d);
			cells.sample(d);
			network.sample();
		},
	};
	globalThis.handrailTerminal = terminal.term; // a person at the browser's console can use it
	const stream = createStream(api, () => "events" + session(), (event, data) => on[event] && on[event](data),
		(s, why) => {
			state.textContent = STATES[s];
			state.className = "state " + s;
			state.title = why || "";
			element.dataset.stream = s;
			if (s === "refused")
				terminal.say(why);
			if (s === "refused" && name !== "default") // this shell has ended
				choose("default");
		});

	function choose(to) {
		name = to;
		shells.chosen(to);
		terminal.clear();
		stream.restart();
	}

	return {
		element,
		start() {
			tabs.show(tabs.has(view) ? view : "shell");
			stream.start();
		},
		close() {
			tabs.close();
			stream.close();
		},
	};
}

let page = null, view = null; // view: the view to start with; null: the shell

function show(element) {
	document.body.replaceChildren(element);
}

function ask(why) {
	const form = createSignIn(api, (me) => open(me));

	if (page)
		page.close();
	page = null;
	show(form.element);
	if (why)
		form.say(why);
	form.focus();
	void tellName(form);
}

async function tellName(form) {
	try {
		const {name} = await (await fetch("name.json")).json();

		if (name)
			form.name(name);
	} catch {
		// the sign-in itself reports a server that does not answer
	}
}

async function leave() {
	try {
		await api.signOut();
		ask("");
	} catch (e) {
		ask("This browser has forgotten the sign-in, but the server may still accept it: " + e.message);
	}
}

function open(me) {
	page = createPage(me, leave);
	show(page.element);
	page.start();
}

// Signs in with the key after "#", which no browser sends: the session key, or one of a fleet's console, which works once.
// The page keeps neither.
async function arrive() {
	const key = /^#key=([\w-]+)(?:&view=([a-z]+))?$/.exec(location.hash);

	if (!key)
		return api.me();
	history.replaceState(null, "", location.pathname + location.search);
	view = key[2];
	return api.signIn(key[1], false);
}

async function begin() {
	const brought = location.hash.startsWith("#key=");

	try {
		open(await arrive());
	} catch (e) {
		ask(e.status !== 403 ? e.message : brought ? "The key in this address is not valid, or no longer: sign in below." : "");
	}
}

api.onEnded(() => ask("The sign-in is over."));
void begin();
