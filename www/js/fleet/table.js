// Makes a table whose rows are replaced by each answer of the service; the focus stays where it was.
import {h} from "../dom.js";

// Returns a column of numbers; `says` is its tooltip.
export const numbers = (title, says) => ({title, says, number: true});

// columns: each is a title, or an object that numbers() returned.
export function createTable(caption, columns, none) {
	const body = h("tbody"), empty = h("p", {class: "note", hidden: true}, none);
	const table = h("table", {}, h("caption", {}, caption),
		h("thead", {}, h("tr", {}, ...columns.map((c) => h("th", {scope: "col", title: c.says, class: c.number ? "number" : null},
			c.title ?? c)))), body);

	return {
		element: h("div", {}, table, empty),
		// rows: elements; a button in one that has a data-id is found again by it
		show(rows) {
			const had = body.contains(document.activeElement) ? document.activeElement.dataset.id : null;

			body.replaceChildren(...rows);
			table.hidden = rows.length === 0;
			empty.hidden = rows.length > 0;
			if (had)
				[...body.querySelectorAll("button")].find((b) => b.dataset.id === had)?.focus();
		},
	};
}
