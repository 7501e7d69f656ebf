// Runs in each document, in an isolated world: sets marks for the extraction, and answers an action's
// queries about an element. It shares the document with the page, but no variable.
(() => {
'use strict';
// a window's first document may reuse the window object of the empty one before it
if (globalThis.handrail && globalThis.handrail.document === document) return;
const RATIO = 'browsergym_visibility_ratio', MARK = 'browsergym_set_of_marks';
const ARIA = ['aria-roledescription', 'aria-description'];
const MARKABLE = new Set(['INPUT', 'TEXTAREA', 'SELECT', 'BUTTON', 'A', 'IFRAME', 'VIDEO', 'LI', 'TD', 'OPTION']);
const h = globalThis.handrail = {document, next: 0, frames: 0, passes: 0, scrolls: 0};

// Lists elements in document order, those of open shadow trees after their hosts.
function all(root, ret) {
  for (const el of root.querySelectorAll('*')) {
    ret.push(el);
    if (el.shadowRoot) all(el.shadowRoot, ret);
  }
  return ret;
}

// Makes a ... z, aA ... zZ, aAA ...: the last letter changes fastest.
function letters(n) {
  let width = 1, count = 26;
  while (n >= count) {
    n -= count;
    count *= 26;
    width++;
  }
  let text = '';
  for (let i = 0; i < width; i++) {
    text = String.fromCharCode((i === width - 1 ? 97 : 65) + n % 26) + text;
    n = Math.floor(n / 26);
  }
  return text;
}

function parentOf(node) {
  if (node.parentElement) return node.parentElement;
  const root = node.getRootNode();
  return root instanceof ShadowRoot ? root.host : null;
}

function at(x, y) {
  let root = document, last = null, el = null;
  do {
    last = el;
    el = root.elementFromPoint(x, y);
    root = el && el.shadowRoot;
  } while (root && el !== last);
  return el;
}

function holds(el, inner) {
  for (; inner; inner = parentOf(inner))
    if (inner === el) return true;
  return false;
}

function markable(el, clickers) {
  const r = el.getBoundingClientRect();
  if (r.width * r.height < 20) return false;
  if (!holds(el, at((r.left + r.right) / 2, (r.top + r.bottom) / 2))) return false;
  if (!MARKABLE.has(el.tagName) && !clickers.has(el) && getComputedStyle(el).cursor !== 'pointer') return false;
  return true;
}

function setOfMarks(el, buttons, clickers) {
  el.setAttribute(MARK, '0');
  if (!markable(el, clickers) || buttons.some((b) => b !== el && b.contains(el))) return;
  const p = el.parentElement;
  if (p && p.tagName === 'SPAN' && p.children.length === 1 && p.getAttribute('role') && p.getAttribute(MARK) === '1') return;
  el.setAttribute(MARK, '1');
  if (el.matches('button, a, input[type="button"], div[role="button"]')) buttons.push(el);
  for (let up = p; up; up = up.parentElement) up.setAttribute(MARK, '0');
}

function values(el) {
  if (typeof el.value !== 'undefined') el.setAttribute('value', el.value);
  if (typeof el.checked !== 'undefined') {
    if (el.checked === true) el.setAttribute('checked', '');
    else el.removeAttribute('checked');
  }
}

// Makes one pass over the document; resolves when the observer has reported each element, or after waitMs.
h.mark = (prefix, waitMs) => {
  const seen = new Set(), buttons = [], clickers = new Set(), list = all(document, []);
  for (const el of list)
    if (el.hasAttribute('browsergym_onclick')) {
      el.removeAttribute('browsergym_onclick');
      clickers.add(el);
    }
  let left = list.length, done;
  const told = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const e of entries) {
      e.target.setAttribute(RATIO, Math.round(e.intersectionRatio * 100) / 100);
      if (!told.has(e.target)) {
        told.add(e.target);
        left--;
      }
    }
    if (left <= 0 && done) done();
  }, {threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]});
  for (const el of list) {
    el.setAttribute(RATIO, '0');
    observer.observe(el);
    values(el);
    let bid = el.getAttribute('bid');
    // an attribute found on the first pass is the page's own
    if (bid === null || seen.has(bid) || h.passes === 0) {
      const frame = el.tagName === 'IFRAME' || el.tagName === 'FRAME';
      bid = prefix + (frame ? letters(h.frames++) : String(h.next++));
      el.setAttribute('bid', bid);
    }
    seen.add(bid);
    for (const name of ARIA) el.setAttribute(name, 'browsergym_id_' + bid + ' ' + (el.getAttribute(name) || ''));
    setOfMarks(el, buttons, clickers);
  }
  h.passes++;
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(), waitMs);
    done = () => {
      clearTimeout(timer);
      observer.disconnect();
      resolve(list.length);
    };
    if (left <= 0) done();
  });
};

h.unmark = () => {
  for (const el of all(document, []))
    for (const name of ARIA) {
      const text = el.getAttribute(name);
      if (text === null || !text.startsWith('browsergym_id_')) continue;
      const rest = text.replace(/^browsergym_id_[a-zA-Z0-9]+\s?/, '');
      if (rest) el.setAttribute(name, rest);
      else el.removeAttribute(name);
    }
};

h.find = (bid) => {
  const found = all(document, []).filter((el) => el.getAttribute('bid') === bid);
  return found.length === 0 ? null : found[0];
};

h.active = () => {
  let el = document.activeElement;
  while (el && el.shadowRoot && el.shadowRoot.activeElement) el = el.shadowRoot.activeElement;
  return el;
};

// Returns the focused element; if that is a frame, its content decides.
const FRAMES = ['iframe', 'frame', 'object', 'embed', 'fencedframe'];
h.focused = () => {
  const el = h.active();
  return el && {bid: el.getAttribute('bid'), frame: FRAMES.includes(el.localName)};
};

h.owner = (el) => ({bid: el.getAttribute('bid'), mute: el.hasAttribute('sandbox') && !el.sandbox.contains('allow-scripts')});

// Prints an element on one line, shortest attributes first.
h.preview = (el) => {
  const flags = new Set(['checked', 'selected', 'disabled', 'readonly', 'multiple']);
  const cut = (s, n) => s.length <= n ? s : s.substring(0, n - 1) + '\u2026';
  const attributes = [];
  for (const {name, value} of el.attributes) {
    if (name === 'style') continue;
    attributes.push(!value && flags.has(name) ? ' ' + name : ' ' + name + '="' + value + '"');
  }
  attributes.sort((a, b) => a.length - b.length);
  const tag = el.nodeName.toLowerCase(), head = '<' + tag + cut(attributes.join(''), 500);
  if (['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'param', 'source', 'track', 'wbr'].includes(tag))
    return (head + '/>').replace(/\n/g, '\u21b5').replace(/\t/g, '\u21c6');
  const kids = [...el.childNodes];
  const text = kids.length <= 5 && kids.every((k) => k.nodeType === 3) ? el.textContent : kids.length ? '\u2026' : '';
  return (head + '>' + cut(text, 50) + '</' + tag + '>').replace(/\n/g, '\u21b5').replace(/\t/g, '\u21c6');
};

// ---- conditions of an action ----

const CONTROL = 'input, textarea, select', LIKE_BUTTON = 'button, [role=button], [role=checkbox], [role=radio]';

// Returns the element that a person who aims at el really uses.
h.target = (el, toLabel) => {
  if (!el.matches(CONTROL) && !el.isContentEditable) el = el.closest(LIKE_BUTTON) || el;
  if (toLabel && !el.matches('a, ' + CONTROL + ', [role=link], ' + LIKE_BUTTON) && !el.isContentEditable) {
    const label = el.closest('label');
    if (label && label.control) el = label.control;
  }
  return el;
};

function visible(el) {
  const style = getComputedStyle(el);
  if (style.display === 'contents') {
    for (const kid of el.childNodes) {
      if (kid.nodeType === 1 && visible(kid)) return true;
      if (kid.nodeType === 3) {
        const range = document.createRange();
        range.selectNode(kid);
        const r = range.getBoundingClientRect();
        if (r.width > 0 && r.height > 0) return true;
      }
    }
    return false;
  }
  if (!el.checkVisibility() || style.visibility !== 'visible') return false;
  const r = el.getBoundingClientRect();
  return r.width > 0 && r.height > 0;
}

const DISABLES = ['BUTTON', 'INPUT', 'SELECT', 'TEXTAREA', 'OPTION', 'OPTGROUP'];
const ARIA_DISABLES = new Set(('application button composite gridcell group input link menuitem scrollbar separator tab ' +
  'checkbox columnheader combobox grid listbox menu menubar menuitemcheckbox menuitemradio option radio radiogroup row ' +
  'rowheader searchbox select slider spinbutton switch tablist textbox toolbar tree treegrid treeitem').split(' '));
const ARIA_READONLY = new Set(('checkbox combobox grid gridcell listbox radiogroup slider spinbutton textbox columnheader ' +
  'rowheader searchbox switch treegrid').split(' '));

function disabled(el) {
  if (DISABLES.includes(el.tagName) && (el.hasAttribute('disabled') || el.matches(':disabled'))) return true;
  if (el.tagName === 'OPTION' && el.closest('optgroup[disabled]')) return true;
  // only an element with a role that can be disabled inherits it
  const role = (el.getAttribute('role') || '').trim().split(/\s+/)[0];
  const native = el.matches('a[href], area[href], ' + CONTROL + ', button, option, optgroup, fieldset, summary, td, th, tr');
  if (!native && !ARIA_DISABLES.has(role)) return false;
  for (let up = el; up; up = parentOf(up)) {
    const said = (up.getAttribute('aria-disabled') || '').toLowerCase();
    if (said === 'true') return true;
    if (said === 'false') return false;
  }
  return false;
}

// Returns null if that is unknown.
function readonly(el) {
  if (el.matches(CONTROL)) return el.hasAttribute('readonly');
  const role = (el.getAttribute('role') || '').trim().split(/\s+/)[0];
  if (ARIA_READONLY.has(role)) return el.getAttribute('aria-readonly') === 'true';
  return el.isContentEditable ? false : null;
}

function frame() {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

async function stable(el) {
  let last = null, still = 0;
  for (;;) {
    await frame();
    const r = el.getBoundingClientRect();
    if (last && last.x === r.x && last.y === r.y && last.width === r.width && last.height === r.height) return true;
    if (last && ++still > 1) return false;
    last = r;
  }
}

// Returns '' if el has all states of the letters: v(isible), e(nabled), w(ritable), s(table); otherwise
// the missing one. '!' leads a failure that waiting cannot fix.
h.check = async (el, states) => {
  if (!el.isConnected) return 'detached';
  if (states.includes('s') && visible(el) && !(await stable(el))) return 'stable';
  if (states.includes('v') && !visible(el)) return 'visible';
  const aim = h.target(el, true);
  if (states.includes('e') && disabled(aim)) return 'enabled';
  if (states.includes('w')) {
    if (disabled(aim)) return 'enabled';
    const r = readonly(aim);
    if (r === null)
      return '!Error: Element is not an <input>, <textarea>, <select> or [contenteditable] and does not have a role allowing [aria-readonly]';
    if (r) return 'editable';
  }
  return '';
};

// Returns the position of el's first box; its difference from DevTools' is the document's position.
h.box = (el) => {
  const r = el.getClientRects()[0] || el.getBoundingClientRect();
  return [r.left, r.top, innerWidth, innerHeight];
};

h.scroll = (el, block) => el.scrollIntoView({block, inline: block, behavior: 'instant'});

// Returns '' if a press at that point reaches el, otherwise the element that gets it.
h.hit = (el, x, y) => {
  let aim = el;
  if (!el.matches(CONTROL) && !el.isContentEditable) aim = el.closest('button, [role=button], a, [role=link]') || el;
  const got = at(x, y);
  if (!got) return 'nothing is there';
  if (holds(aim, got)) return '';
  // a label forwards the press
  const label = got.closest('label');
  if (label && label.control === aim) return '';
  // the covering element, up to below the common parent
  let top = got;
  for (let up = got; up && !holds(up, aim); up = parentOf(up)) top = up;
  const from = top === got ? '' : ' from ' + h.preview(top) + ' subtree';
  return h.preview(got) + from + ' intercepts pointer events';
};

h.focus = (el, reset) => {
  const aim = h.target(el, false);
  const had = el.getRootNode().activeElement === el;
  el.focus();
  if (reset && !had && el.matches('input')) {
    try {
      el.setSelectionRange(0, 0);
    } catch (e) { /* not of a kind with a selection */ }
  }
  return aim.isConnected;
};

const TYPED = new Set(['', 'email', 'number', 'password', 'search', 'tel', 'text', 'url']);
const SET = new Set(['color', 'date', 'time', 'datetime-local', 'month', 'range', 'week']);

// Returns 'done', 'type' if the text must be typed over the selection, or '!' and the error.
h.fill = (el, value) => {
  el = h.target(el, true);
  if (el.tagName === 'INPUT') {
    const type = (el.getAttribute('type') || '').toLowerCase() === '' ? '' : el.type;
    if (!TYPED.has(type) && !SET.has(type)) return '!Error: Input of type "' + type + '" cannot be filled';
    if (type === 'number') {
      value = value.trim();
      if (isNaN(Number(value))) return '!Error: Cannot type text into input[type=number]';
    }
    if (type === 'color') value = value.toLowerCase();
    if (SET.has(type)) {
      value = value.trim();
      el.focus();
      el.value = value;
      if (el.value !== value) return '!Error: Malformed value';
      el.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
      el.dispatchEvent(new Event('change', {bubbles: true}));
      return 'done';
    }
  } else if (el.tagName !== 'TEXTAREA' && !el.isContentEditable) {
    return '!Error: Element is not an <input>, <textarea> or [contenteditable] element';
  }
  if (el.tagName === 'INPUT' || el.tagName === 'TEXTAREA') {
    el.select();
    el.focus();
  } else {
    const range = document.createRange();
    range.selectNodeContents(el);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    el.focus();
  }
  return 'type';
};

// Returns 'done', '' if an option is still missing, or '!' and the error.
h.select = (el, wanted, many) => {
  el = h.target(el, true);
  if (el.tagName !== 'SELECT') return '!Error: Element is not a <select> element';
  const normal = (s) => s.replace(/\u200b/g, '').trim().replace(/\s+/g, ' ');
  const options = [...el.options], chosen = [];
  let left = wanted.slice();
  for (const option of options) {
    const fits = (w) => w === option.value || normal(w) === normal(option.label);
    if (!left.some(fits)) continue;
    chosen.push(option);
    if (!el.multiple) {
      left = [];
      break;
    }
    left = left.filter((w) => !fits(w));
  }
  if (left.length) return '';
  el.value = undefined;
  for (const option of chosen) option.selected = true;
  el.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  el.dispatchEvent(new Event('change', {bubbles: true}));
  return 'done';
};

h.files = (el, n) => {
  if (n > 1 && !el.multiple && !el.webkitdirectory) return '!Error: Non-multiple file input can only accept single file';
  if (n === 0) {
    el.value = '';
    el.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
    el.dispatchEvent(new Event('change', {bubbles: true}));
  }
  return '';
};

// ---- pending work of the page ----

const players = new WeakSet();
let viewed = document.contentType !== 'application/pdf';

// Returns the milliseconds until all finite animations end; -1: until h.viewer() is done.
h.busy = () => {
  let ms = 0;
  for (const a of document.getAnimations()) {
    if (a.playState !== 'running') continue;
    const t = a.effect && a.effect.getComputedTiming();
    if (t && Number.isFinite(t.endTime) && a.currentTime !== null) ms = Math.max(ms, t.endTime - a.currentTime);
  }
  // a player that is still laying itself out
  for (const m of document.querySelectorAll('video, audio'))
    if (!players.has(m)) {
      players.add(m);
      ms = Math.max(ms, 150);
    }
  return viewed ? ms : -1;
};

// Waits until Chromium's PDF viewer has loaded: it then takes the focus.
h.viewer = () => new Promise((resolve) => {
  const done = () => {
    viewed = true;
    resolve(0);
  };
  const el = document.activeElement;
  if (el && el.localName === 'embed') return done();
  document.addEventListener('focusin', done, {once: true, capture: true});
  setTimeout(done, 2500);
});

h.frames2 = async () => {
  await frame();
  await frame();
};

document.addEventListener('scroll', () => h.scrolls++, {capture: true, passive: true});

let drag = null;
addEventListener('dragstart', (e) => drag = e, {capture: true});
addEventListener('mousedown', () => drag = null, {capture: true});
h.dragging = () => drag !== null && !drag.defaultPrevented;

// Waits after a scroll until the moved elements rest.
h.rest = async () => {
  const before = h.scrolls;
  for (let i = 0; i < 6; i++) await frame();
  if (h.scrolls === before) return 0;
  for (let last = -1, i = 0; last !== h.scrolls && i < 120; i++) {
    last = h.scrolls;
    for (let k = 0; k < 4; k++) await frame();
  }
  return h.scrolls - before;
};

// ---- the page used last ----

const tell = () => {
  if (globalThis.handrail_active) globalThis.handrail_active('');
};
// Ignores the release of a key or a button: a page that the press opened may be the last used by then.
for (const kind of ['focus', 'focusin', 'load', 'pageshow', 'mousemove', 'mousedown', 'wheel', 'keydown', 'input', 'touchstart'])
  addEventListener(kind, tell, {capture: true, passive: true});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') tell();
}, {capture: true});
tell();
})();
