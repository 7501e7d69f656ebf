// The page's policy allows no style elements or attributes, and xterm.js makes both. This module puts their text into
// style sheets and style objects instead, which the policy does not restrict.

const create = document.createElement, setAttribute = Element.prototype.setAttribute;

function styleElement() {
	const e = create.call(document, "span"), sheet = new CSSStyleSheet(); // the span replaces the style element, which is forbidden even if it is empty
	const remove = e.remove;

	e.hidden = true;

	Object.defineProperty(e, "textContent", {
		get: () => Array.from(sheet.cssRules, (r) => r.cssText).join("\n"),
		set: (text) => sheet.replaceSync(text),
	});
	e.remove = () => {
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
		remove.call(e);
	};
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
	return e;
}

document.createElement = function (name, options) {
	return String(name).toLowerCase() === "style" ? styleElement() : create.call(document, name, options);
};
Element.prototype.setAttribute = function (name, value) {
	if (name === "style" && this.style)
		this.style.cssText = value;
	else
		setAttribute.call(this, name, value);
};
