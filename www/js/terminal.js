// Shows the shell's output as it comes, and sends keys to the running command if the user asks for it.
import "./csp.js";
import {Terminal} from "../vendor/xterm/xterm.mjs";
import {h, plain} from "./dom.js";
import {theme} from "./theme.js";

const SCROLLBACK = 5000, KEYS_PAUSE = 15;

function decode(base64) {
	return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

// Removes the answers to a program's queries: a viewer must not answer, and fifty pages must not answer fifty times.
function answerNothing(term) {
	const p = term.parser;

	for (const id of [{final: "c"}, {prefix: ">", final: "c"}, {prefix: "=", final: "c"}, {final: "n"},
		{prefix: "?", final: "n"}, {intermediates: "$", final: "p"}, {prefix: "?", intermediates: "$", final: "p"},
		{prefix: ">", final: "q"}, {final: "t"}, {final: "x"}, {prefix: "?", final: "u"}])
		p.registerCsiHandler(id, () => true);
	p.registerDcsHandler({intermediates: "$", final: "q"}, () => true);
	p.registerDcsHandler({intermediates: "+", final: "q"}, () => true);
	for (const osc of [4, 10, 11, 12, 52])
		p.registerOscHandler(osc, (data) => osc === 52 || data.includes("?"));
	p.registerEscHandler({final: "Z"}, () => true);
}

export function createTerminal({api, session, rights}) {
	const term = new Terminal({
		cols: 80, rows: 24, convertEol: false, cursorBlink: false, disableStdin: true, scrollback: SCROLLBACK,
		fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", fontSize: 13, theme: theme(),
		linkHandler: {activate() {}, allowNonHttpProtocols: false}, allowProposedApi: false,
	});
	const box = h("div", {class: "term"}), title = h("bdi", {class: "title"});
	const typing = h("input", {type: "checkbox", disabled: rights() !== "act"});
	const reader = h("input", {type: "checkbox"});
	const line = h("input", {type: "text", class: "mono", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
		"aria-label": "Command", disabled: rights() !== "act"});
	const send = h("button", {type: "submit", disabled: rights() !== "act"}, "Run");
	const interrupt = h("button", {type: "button", disabled: true, title: "Sends C-c to the running command"}, "Interrupt");
	const note = h("p", {class: "note", role: "status"});
	let next = null, turn = 0, running = false, typed = "", typedTimer = 0, sending = Promise.resolve();

	function say(text) {
		note.textContent = plain(text, 500);
	}

	// Computes rows and columns from the size of a character, measured as xterm does.
	function fit() {
		const cell = term.element && term.element.querySelector(".xterm-rows > div");
		const width = box.clientWidth - 32, height = box.clientHeight - 4;
		const core = term.dimensions;

		if (!cell || width < 40 || height < 40)
			return;
		const cw = core ? core.css.cell.width : box.querySelector(".xterm-screen").clientWidth / term.cols;
		const ch = cell.getBoundingClientRect().height || 15;
		const cols = Math.max(20, Math.min(500, Math.floor(width / cw)));
		const rows = Math.max(4, Math.min(200, Math.floor(height / ch)));
		if (cols !== term.cols || rows !== term.rows) {
			term.resize(cols, rows);
			tellSize();
		}
	}

	// Sends the size of the window. Only a command that gets this page's keys is laid out for it.
	function tellSize() {
		if (typing.checked && running)
			void api.post("resize" + session(), {rows: term.rows, columns: term.cols})
				.catch((e) => e.status !== 409 && say(e.message)); // 409: the command has ended, or has not started yet
	}

	// Returns whether the command got the keys.
	async function press(what, body) {
		try {
			await api.post(what + session(), body);
			say("");
			return true;
		} catch (e) {
			say(e.status === 409 ? "No command is running: type a new one below." : e.message);
			return false;
		}
	}

	function flush() {
		const text = typed;

		typed = "";
		typedTimer = 0;
		sending = sending.then(() => press("input", {text}));
	}

	term.onData((data) => {
		if (!typing.checked)
			return;
		typed += data;
		if (!typedTimer)
			typedTimer = setTimeout(flush, KEYS_PAUSE);
	});
	term.onTitleChange((text) => { title.textContent = plain(text, 200); });
	answerNothing(term);

	typing.addEventListener("change", () => {
		term.options.disableStdin = !typing.checked;
		term.options.cursorBlink = typing.checked;
		if (typing.checked) {
			tellSize();
			term.focus();
		}
	});
	reader.addEventListener("change", () => { term.options.screenReaderMode = reader.checked; });
	interrupt.addEventListener("click", () => void press("keys", {keys: ["C-c"]}));

	async function submit(event) {
		const text = line.value;

		event.preventDefault();
		if (running) {
			line.value = "";
			if (!await press("input", {text: text + "\n"}) && line.value === "")
				line.value = text;
			return;
		}
		if (text.trim() === "")
			return;
		line.value = "";
		say("");
		try {
			// the answer comes when the command ends, or runs for longer than the server waits
			const a = await api.post("run" + session(), {action: {action: "run", args: {command: text}}});
			if (a.observation === "error")
				say(a.content);
		} catch (e) {
			say(e.message);
			if (line.value === "")
				line.value = text;
		}
	}

	const form = h("form", {class: "line", onsubmit: submit}, h("label", {class: "prompt", "aria-hidden": "true"}, "$"), line,
		send, interrupt);
	const element = h("section", {class: "terminal", "aria-label": "Terminal"},
		h("div", {class: "bar"}, title, h("label", {}, typing, " Type into it"), h("label", {}, reader, " Screen reader")),
		box, form, note);

	function write(data) {
		return new Promise((done) => term.write(data, done));
	}

	new ResizeObserver(fit).observe(box);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { term.options.theme = theme(); });

	return {
		element,
		term,
		opened() {
			if (!term.element) {
				term.open(box);
				term.textarea.setAttribute("aria-label", "Terminal");
			}
			fit();
		},
		clear() {
			if (typing.checked)
				typing.click(); // keys were for the shell that was seen
			next = null;
			turn++;
			title.textContent = "";
			term.write("", () => term.reset()); // after the output that xterm has not yet parsed
		},
		// Writes the bytes, without those that were written before, and shows how many are missing.
		async output({offset, base64}) {
			const mine = turn;
			let data = decode(base64);

			if (next !== null && offset < next)
				data = data.subarray(Math.min(next - offset, data.length));
			if (next !== null && offset > next)
				await this.gap({from: next, to: offset});
			if (mine !== turn)
				return; // the output is that of the shell shown before
			next = Math.max(next ?? 0, offset + atob(base64).length);
			if (data.length > 0)
				await write(data);
		},
		async gap({from, to}) {
			next = to;
			await write(to > from ? `\r\n\x1b[0;7m ${to - from} bytes are no longer kept \x1b[0m\r\n`
				: "\r\n\x1b[0;7m the shell was restarted \x1b[0m\r\n");
		},
		state(shell) {
			if (shell.running !== running) {
				running = shell.running;
				tellSize();
			}
			send.textContent = running ? "Send" : "Run";
			line.placeholder = running ? "input for the running command" : "a command";
			interrupt.disabled = !running || rights() !== "act";
		},
		offset: () => next,
		say,
		// sends keys to the running command from now on
		type() {
			if (!typing.checked)
				typing.click();
			term.focus();
		},
	};
}
