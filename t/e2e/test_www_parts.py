#!/usr/bin/env python3
"""Parts of the page alone in a real Chromium. A made-up server gives its answers in the order that a fault needs."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from lib.webdriver import Window  # noqa: E402
from lib.www import Keyed, complaints, enter, need_browser  # noqa: E402

# Each test's script runs inside main(), and its result is the test's.
COMMON = """
    const done = arguments[0], module = (name) => import('/handrail/js/' + name + '.js');
    const end = Date.now() + 20000;
    const until = async (what) => {
        for (let v = what(); ; v = what()) {
            if (v) return v;
            if (Date.now() > end) throw new Error('never: ' + what);
            await new Promise((f) => setTimeout(f, 0));
        }
    };
    const gate = () => { let open; const wait = new Promise((f) => { open = f; }); return {wait, open}; };
    const asked = () => document.querySelector('dialog[open] p')?.textContent;
    const press = (title, where = document) =>
        [...where.querySelectorAll('button')].find((b) => b.textContent === title).click();

    // A view of the files a and b in /d. before(what, path, body): awaited before an answer, and may throw.
    const files = async (before) => {
        const {createFiles} = await module('files'), {createConfirm} = await module('confirm');
        const disk = {a: 'old a', b: 'old b'}, puts = [], confirm = createConfirm();
        const parameter = (path, name) => new URLSearchParams(path.slice(path.indexOf('?'))).get(name);
        const api = {
            async get(path) {
                await before('list', parameter(path, 'path'));
                return {path: '/d', next: null, unnamed: 0, entries: Object.keys(disk).sort().map((name) =>
                    ({name, type: 'file', size: 1, modified: null}))};
            },
            async request(path, {body}) {
                if (path.startsWith('download')) {
                    const name = parameter(path, 'path').slice(3);
                    await before('read', name);
                    if (!(name in disk))
                        throw new Error('No such file.');
                    return new Response(disk[name], {headers: {'Content-Length': disk[name].length}});
                }
                const file = body.get('file'), text = await file.text();
                await before('put', file.name, text);
                puts.push(file.name + ': ' + text);
                disk[file.name] = text;
                return new Response('{}');
            },
            async post(what, body) {
                await before(what, body.path);
                if (what === 'rename')
                    disk[body.to.slice(3)] = disk[body.path.slice(3)];
                delete disk[body.path.slice(3)];
                return {};
            },
        };
        const made = createFiles({rights: () => 'act', api, confirm}), view = made.element;
        document.body.replaceChildren(view, confirm.element);
        made.shown("/d");
        await until(() => view.querySelectorAll(".tree li").length === 2);
        return {disk, puts, view,
            field: () => view.querySelector('textarea'), note: () => view.querySelector('.side > .note').textContent,
            title: () => view.querySelector('.viewer .title')?.textContent};
    };
"""


def result(script):
    need_browser()
    with Keyed() as s, Window() as w:
        w.open(s.page())
        w.until("the page is at rest", "return document.querySelector('#key')")  # it replaces all that is shown
        got = w.js_async(COMMON + "const main = async () => {" + script +
                         "}; main().then(done, (e) => done(String(e.stack)));")
        equal(complaints(w), [])
        return got


def questions():
    """A question that cannot be asked stops no later one."""
    equal(result("""
        const {createConfirm} = await module('confirm'), confirm = createConfirm();
        const failed = await confirm.ask('one?', 'Yes').catch((e) => e.name); // its dialog is in no document
        document.body.append(confirm.element);
        const answer = confirm.ask('two?', 'Yes').catch((e) => e.name);
        await Promise.race([answer, until(asked)]);
        document.querySelector('dialog button[value=yes]')?.click();
        return [failed, await answer];"""), ["InvalidStateError", True])


def question_of_a_hidden_view():
    """An upload that finds its name taken asks while another view is shown."""
    need_browser()
    with Keyed() as s, Window() as w:
        with open(s.work_dir + "/text", "w") as f:
            f.write("old")
        enter(w, s)
        w.click("#tab-files")
        w.until("an entry", "return [...document.querySelectorAll('.tree li .name')]"
                            ".some((e) => e.textContent === 'text')")
        w.js("""const d = new DataTransfer(), pick = document.querySelector('.upload input');
            d.items.add(new File(['sent'], 'text'));
            pick.files = d.files; pick.dispatchEvent(new Event('change'));
            document.querySelector('#tab-shell').click();""")
        w.until("asks", "return document.querySelector('dialog[open] p')?.textContent === arguments[0]",
                "text exists in %s. Replace it?" % s.work_dir)
        equal(w.js("return [document.querySelector('#view-files').hidden, "
                   "document.querySelector('dialog[open]').checkVisibility()]"), [True, True])
        w.click("dialog[open] button[value=yes]")
        w.until("it is sent", "return document.querySelector('.files .side > .note').textContent === 'text: uploaded.'")
        with open(s.work_dir + "/text") as f:
            equal(f.read(), "sent")
        equal(complaints(w), [])


def failed_lists():
    """A change that is done counts as done where the directory cannot be listed after it, and the note gives both."""
    equal(result("""
        let lists = true;
        const f = await files(async (what) => {
            if (what === 'list' && !lists)
                throw new Error('No list.');
        });
        const item = (name) => [...f.view.querySelectorAll('.tree li')].find((li) => li.textContent.startsWith(name));
        const titles = [], answer = async (title, note, value) => {
            await until(asked);
            if (value)
                document.querySelector('dialog input').value = value;
            press(title, document.querySelector('dialog'));
            await until(() => f.note() === note);
            titles.push(f.title());
        };
        item('a').click();
        await until(() => f.title() === 'a');
        press('Edit', f.view);
        f.field().value = 'new';
        lists = false;
        press('Rename', f.view);
        await answer('Rename', 'Renamed to c. No list.', 'c');
        lists = true;
        press('Save', f.view);
        await until(() => f.note() === 'c: saved.' && f.title() === 'c');
        lists = false;
        item('b').click();
        await until(() => f.title() === 'b');
        press('Delete', f.view);
        await answer('Delete', 'b: deleted. No list.');
        press('New file', f.view);
        await answer('Make', 'made: made. No list.', 'made');
        const pick = f.view.querySelector('.upload input'), d = new DataTransfer();
        d.items.add(new File(['sent'], 'sent'));
        pick.files = d.files;
        pick.dispatchEvent(new Event('change'));
        await until(() => f.note() === 'sent: uploaded. No list.');
        return [titles, f.puts, f.disk];"""),
          [["c", None, None], ["c: new", "made: ", "sent: sent"], {"c": "new", "made": "", "sent": "sent"}])


# Edits a, and saves it; the server has got the request `slow`, and answers it when held.open() is called.
SLOW_SAVE = """
        const held = gate(), listed = gate();
        let slow = null, asked_for = false, slowLists = false;
        const f = await files(async (what, name) => {
            if (what === slow && name === 'a') {
                asked_for = true;
                await held.wait;
            }
            if (what === 'list' && slowLists)
                await listed.wait;
        });
        const item = (name) => [...f.view.querySelectorAll('.tree li')].find((li) => li.textContent.startsWith(name));
        const edit = async (name, text) => {
            item(name).click();
            await until(() => f.title() === name && !f.field());
            press('Edit', f.view);
            f.field().value = text;
        };
        const answer = async (title, value) => {
            await until(asked);
            if (value)
                document.querySelector('dialog input').value = value;
            press(title, document.querySelector('dialog'));
            await until(() => !asked());
        };
        await edit('a', 'new a');
        slow = '%s';
        press('Save', f.view);
        await until(() => asked_for);
"""


def saves_of_another_file():
    """A slow save writes its own file and leaves the editor of another one alone."""
    for slow in ("read", "put"):
        equal(result(SLOW_SAVE % slow + """
            item('b').click();
            await answer('Discard');
            await until(() => f.title() === 'b');
            press('Edit', f.view);
            f.field().value = 'new b';
            held.open();
            await until(() => f.note().endsWith(': saved.'));
            const kept = [f.note(), f.title(), f.field()?.value];
            if (f.field()) {
                press('Save', f.view);
                await until(() => f.note() === 'b: saved.');
            }
            return [kept, f.puts];"""), [["a: saved.", "b", "new b"], ["a: new a", "b: new b"]], slow)


def saves_of_a_moved_file():
    """A save that finds its file renamed or deleted meanwhile makes no file of the old name, and keeps the text."""
    moved = "a was renamed to c before its text was saved: save it again."
    equal(result(SLOW_SAVE % "read" + """
        press('Rename', f.view);
        await answer('Rename', 'c');
        await until(() => f.note() === 'Renamed to c.');
        held.open();
        await until(() => f.note() !== 'Renamed to c.');
        const kept = [f.note(), f.title(), f.field()?.value];
        press('Save', f.view);
        await until(() => f.note() === 'c: saved.');
        return [kept, f.puts];"""), [[moved, "c", "new a"], ["c: new a"]])
    equal(result(SLOW_SAVE % "put" + """
        press('Rename', f.view);
        await answer('Rename', 'c');
        await until(() => f.note() === 'Renamed to c.');
        held.open();
        await until(() => f.note() !== 'Renamed to c.');
        return [f.note(), f.title(), f.field()?.value];"""), [moved, "c", "new a"])
    equal(result(SLOW_SAVE % "read" + """
        press('Delete', f.view);
        await answer('Delete');
        await until(() => f.note() === 'a: deleted.');
        held.open();
        await until(() => f.note() !== 'a: deleted.');
        return [f.note(), f.puts, f.disk];"""), ["a was deleted before its text was saved.", [], {"b": "old b"}])
    # the save ends before the list that follows the rename, whose note does not replace that of the save
    equal(result(SLOW_SAVE % "read" + """
        slowLists = true;
        press('Rename', f.view);
        await answer('Rename', 'c');
        await until(() => f.title() === 'c');
        const rest = () => new Promise((f) => setTimeout(f, 0)); // answers are there, so nothing else takes time
        held.open();
        await rest();
        listed.open();
        await rest();
        return [f.note(), f.title(), f.field()?.value, f.puts];"""), [moved, "c", "new a", []])


def text_that_a_reload_would_lose():
    """The browser asks before it leaves the page while a text has unsaved changes, and only then."""
    equal(result("""
        const f = await files(async () => {}), leaves = () => {
            const e = new Event('beforeunload', {cancelable: true});
            window.dispatchEvent(e);
            return !e.defaultPrevented;
        }, all = [];
        f.view.querySelector('.tree li').click();
        await until(() => f.title() === 'a');
        press('Edit', f.view);
        all.push(leaves());
        f.field().value = 'changed';
        all.push(leaves());
        press('Save', f.view);
        await until(() => f.note() === 'a: saved.');
        all.push(leaves());
        press('Edit', f.view);
        f.field().value = 'changed again';
        all.push(leaves());
        document.body.replaceChildren(); // the sign-in is over, and the text is gone
        all.push(leaves());
        return all;"""), [True, False, True, False, True])


def cells_that_are_fetched():
    """Cells are fetched if an action was answered or runs, or a cell runs, and never where there is no kernel."""
    equal(result("""
        const {createCells} = await module('cells'), shown = [];
        let fetched = 0, running = false, answer = {cells: []};
        const cells = createCells({get: async () => {
            fetched++;
            if (!answer)
                throw new Error('no');
            return answer;
        }}, {show: (list) => shown.push(list.length), isRunning: () => running});
        const sample = async (state, busy, actions) => {
            const before = fetched;
            cells.server({ready: {components: {plugins: state ? {jupyter: {state}} : {}, pool_action: {busy}}}});
            cells.sample({minutes: [[60, actions, 0, 0, 0]]});
            await new Promise((d) => setTimeout(d, 0));
            return fetched - before;
        };
        const all = [await sample(null, 1, 1), await sample('not started', 0, 2), await sample('ready', 0, 2),
            await sample('ready', 0, 2), await sample('ready', 1, 2),
            await sample('ready', 0, 3), await sample('ready', 0, 3)];
        running = true;
        all.push(await sample('ready', 0, 3));
        running = false;
        answer = null; // a failure is no list, and the next sample asks again
        all.push(await sample('ready', 0, 4));
        answer = {other: 1};
        all.push(await sample('ready', 0, 4), await sample('ready', 0, 4));
        return [all, shown];"""), [[0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 0]])


def shells_that_end():
    """A shell ends with the bash that a page started in it, whichever page that was, and with no other command."""
    equal(result("""
        const {createShells} = await module('shells'), told = [];
        let answer = null, names = [];
        const shells = createShells({get: async () => ({sessions: names.map((name) => ({name}))}),
            post: async (path, body) => {
                if (path.startsWith('kill'))
                    told.push(path);
                return path.startsWith('run') ? answer(body.action.args.command) : {};
            }}, {rights: () => 'act', choose: (name) => shells.chosen(name), begun: () => told.push('begun'),
                say: (text) => told.push(text)});
        const seen = (name, running, ...texts) => shells.state({name, running, working_dir: '/'}, texts.map(
            (command, i) => ({id: i, state: running && i === texts.length - 1 ? 'running' : 'done', command})));
        const kills = async (f) => {
            told.length = 0;
            await f();
            await new Promise((d) => setTimeout(d, 0));
            return [...told];
        };
        const more = shells.element.querySelector('button'), all = [];
        let bash = '';
        const make = async (what) => {
            answer = (command) => { bash = command; return what; };
            more.click();
            await until(() => bash !== '' && !more.disabled);
        };

        // of somebody else, who gave it such a name
        all.push(await kills(() => { seen('page-7', true, 'make'); seen('page-7', false, 'make'); }));
        // of this page: its bash is seen once, and then ends
        all.push(await kills(async () => {
            await make({observation: 'run', content: '', extras: {metadata: {exit_code: -1}}});
            seen('page-1', false);
            seen('page-1', true, bash);
            seen('page-1', true, bash);
            seen('page-1', false, bash);
        }));
        // of another page, or of this one before it was loaded again
        all.push(await kills(() => { seen('page-2', true, bash); seen('page-2', false, bash); }));
        // another command was started after that bash had ended
        all.push(await kills(() => {
            seen('page-3', true, bash);
            seen('page-3', true, bash, 'make');
            seen('page-3', false, bash, 'make');
        }));
        // its bash does not come up: it is not left behind
        all.push(await kills(() => make({observation: 'error', content: 'not ready'})));
        all.push(await kills(() => { seen('page-1', true, 'make'); seen('page-1', false, 'make'); }));
        return all;"""), [[], ["begun", "kill?session=page-1"], ["kill?session=page-2"], [],
                          ["kill?session=page-1", "No bash in page-1: not ready"], []])


TESTS = [questions, question_of_a_hidden_view, failed_lists, saves_of_another_file, saves_of_a_moved_file,
         text_that_a_reload_would_lose, cells_that_are_fetched, shells_that_end]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
