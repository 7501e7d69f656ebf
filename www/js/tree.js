// Makes a tree as screen readers know it: Tab reaches one item, and arrow keys move from there. The content of an item is
// read when the item is opened, a page at a time, and forgotten when it is closed. All items are one list, each with its
// level.
import {foreign, h, plain} from "./dom.js";

// read(path, after): a promise of {entries, next} after that name, next null at the end; an entry has a name, a detail
// and a title, and `opens` if it can be opened. choose(node): an entry that cannot be opened was chosen. moved(node): the
// node is selected now. failed(node, error): the node could not be read. A node has path, entry, parent.
export function createTree(label, {read, choose, moved, failed}) {
	const element = h("ul", {class: "tree", role: "tree", "aria-label": label});
	const nodes = new WeakMap(); // item to node
	let top = null, current = null, turn = 0;

	function join(dir, name) {
		return (dir.endsWith("/") ? dir : dir + "/") + name.replace(/\/$/, "");
	}

	function go(li) {
		if (!li)
			return;
		current.tabIndex = -1;
		current.setAttribute("aria-selected", "false");
		current = li;
		li.tabIndex = 0;
		li.setAttribute("aria-selected", "true");
		li.focus();
		moved(nodes.get(li));
	}

	function opens(node) {
		node.entry.opens = true;
		node.li.setAttribute("aria-expanded", "false");
	}

	function item(node, text, detail, title) {
		node.level = node.parent.level + 1;
		node.li = h("li", {role: "treeitem", tabindex: "-1", "aria-level": node.level, "aria-selected": "false", title,
			onclick: () => { go(node.li); act(node); }}, foreign(text, {class: "name mono"}),
			h("span", {class: "size"}, plain(detail || "")));
		node.li.style.setProperty("--level", node.level);
		nodes.set(node.li, node);
		if (node.entry && node.entry.opens)
			opens(node);
		return node.li;
	}

	// Makes the items of a page of a node; place() puts them into the list.
	function put(node, page, place) {
		const items = page.entries.map((entry) =>
			item({path: join(node.path, entry.name), entry, parent: node}, entry.name, entry.detail, entry.title));

		node.items.push(...items);
		place(...items, ...page.next === null ? [] : [item({path: node.path, more: page.next, parent: node}, "More…")]);
		node.items.forEach((li, i) => {
			li.setAttribute("aria-posinset", i + 1);
			li.setAttribute("aria-setsize", page.next === null ? node.items.length : -1);
		});
		return items;
	}

	function close(node) {
		const inside = [];

		for (let li = node.li.nextElementSibling; li && nodes.get(li).level > node.level; li = li.nextElementSibling)
			inside.push(li);
		if (inside.includes(current))
			go(node.li);
		for (const li of inside)
			li.remove();
		node.items = null;
		node.li.setAttribute("aria-expanded", "false");
	}

	// Throws where the node could not be read.
	async function fill(node) {
		const mine = node.turn = ++turn;

		node.li.setAttribute("aria-busy", "true");
		try {
			const page = await read(node.path, null);
			if (node.turn !== mine || !node.li.isConnected)
				return;
			if (node.items)
				close(node);
			node.items = [];
			put(node, page, (...items) => node.li.after(...items));
			node.li.setAttribute("aria-expanded", "true");
		} catch (e) {
			if (node.turn === mine)
				throw e;
		} finally {
			node.li.removeAttribute("aria-busy");
		}
	}

	async function open(node) {
		try {
			await fill(node);
		} catch (e) {
			failed(node, e);
		}
	}

	async function more(node) {
		const mine = node.turn = ++turn, li = node.li;

		try {
			const page = await read(node.path, node.more);
			if (node.turn !== mine || !li.isConnected)
				return;
			const items = put(node.parent, page, (...all) => li.before(...all));
			if (current === li)
				go(items[0] || li.previousElementSibling || li.nextElementSibling);
			li.remove();
		} catch (e) {
			failed(node, e);
		}
	}

	function toggle(node) {
		node.turn = 0; // a read of the node that is still running is ignored
		if (node.items)
			close(node);
		else
			void open(node);
	}

	function act(node) {
		if (node.more !== undefined)
			void more(node);
		else if (node.entry.opens)
			toggle(node);
		else
			choose(node);
	}

	// Returns the next item whose name begins with the letter, from the top again after the last.
	function find(letter) {
		const next = (li) => li.nextElementSibling || element.firstElementChild;

		for (let li = next(current); li !== current; li = next(li))
			if (nodes.get(li).entry?.name.toLowerCase().startsWith(letter.toLowerCase()))
				return li;
		return null;
	}

	function use(node) {
		go(node.li);
		act(node);
	}

	const keys = {
		ArrowDown: () => go(current.nextElementSibling),
		ArrowUp: () => go(current.previousElementSibling),
		Home: () => go(element.firstElementChild),
		End: () => go(element.lastElementChild),
		Enter: use,
		" ": use,
		ArrowRight(node) {
			if (node.items && node.items.length > 0)
				go(node.items[0]);
			else if (!node.items && node.entry && node.entry.opens)
				toggle(node);
		},
		ArrowLeft(node) {
			if (node.items)
				close(node);
			else
				go(node.parent.li);
		},
	};

	element.addEventListener("keydown", (event) => {
		if (!current || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (keys[event.key])
			keys[event.key](nodes.get(current));
		else if (event.key.length === 1)
			go(find(event.key));
		else
			return;
		event.preventDefault();
	});

	// Shows another tree, whose first page was read.
	function show(path, page) {
		turn++;
		element.replaceChildren();
		top = {path, level: 0, items: [], parent: null};
		put(top, page, (...items) => element.append(...items));
		current = element.firstElementChild;
		if (current)
			current.tabIndex = 0; // Tab reaches this item, and nothing is selected yet
	}

	const at = (path) => [...element.children].map((li) => nodes.get(li)).find((n) => n.entry && n.path === path);

	// Reads a directory again that may have changed, and those that are open in it; null: the topmost. Throws the
	// first error of those inside after it has tried all.
	async function again(node) {
		const was = top, inside = [], why = [];

		for (let li = node ? node.li.nextElementSibling : element.firstElementChild; li; li = li.nextElementSibling) {
			const n = nodes.get(li);
			if (node && n.level <= node.level)
				break;
			if (n.items)
				inside.push(n.path);
		}
		if (node) {
			await fill(node);
		} else {
			const page = await read(was.path, null);
			if (top !== was)
				return;
			show(was.path, page);
		}
		for (const path of inside) {
			const n = at(path);
			if (n && !n.items)
				await fill(n).catch((e) => why.push(e));
		}
		if (why.length > 0)
			throw why[0];
	}

	return {
		element,
		opens,
		open,
		show,
		again,
		// Returns the open directory of that path, null for the topmost, undefined where it is not shown.
		opened(path) {
			const n = path === top.path ? null : at(path);

			return n === null || n && n.items ? n : undefined;
		},
	};
}
