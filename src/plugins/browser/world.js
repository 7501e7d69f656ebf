// This script runs in each document beside the page's own scripts: it records when timers that end
// soon are due, and shows handrail's isolated world which elements have click handlers.
(() => {
'use strict';
const key = Symbol.for('handrail'), clock = performance.now.bind(performance);
if (globalThis[key]) return;
let dues = [];
const note = (ms) => {
  ms = Math.max(Number(ms) || 0, 4);
  if (ms > 5000) return;
  if (dues.length >= 1000) dues = dues.filter((due) => due > clock()).slice(-500);
  dues.push(clock() + ms);
};
for (const name of ['setTimeout', 'setInterval']) {
  const real = globalThis[name];
  globalThis[name] = new Proxy(real, {
    apply(target, self, args) {
      note(args[1]);
      return Reflect.apply(target, self, args);
    }
  });
}
Object.defineProperty(globalThis, key, {value: Object.freeze({
  // returns the milliseconds until the last timer that ends within the limit
  due: (limit) => {
    const now = clock();
    dues = dues.filter((due) => due > now - 20);
    return Math.max(0, ...dues.filter((due) => due <= now + limit).map((due) => due + 5 - now));
  },
  clickers: () => {
    const walk = (root) => {
      for (const el of root.querySelectorAll('*')) {
        if (el.onclick) el.setAttribute('browsergym_onclick', '');
        if (el.shadowRoot) walk(el.shadowRoot);
      }
    };
    walk(document);
  }
})});
})();
