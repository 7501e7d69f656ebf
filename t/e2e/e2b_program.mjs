// A user's program with an npm SDK of E2B; e2b_sdks.py runs it: e2b_program.mjs VERSION, in the directory of the SDKs.
// It prints a line for each feature: pass, fail with the reason, or "-" where the SDK has no such call.
import { strict as assert } from 'node:assert'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [directory, version] = process.argv.slice(2)
const here = path.join(directory, 'js' + version)
const code = version.startsWith('2.8')
const require = createRequire(pathToFileURL(path.join(here, 'x.js')))
const { Sandbox, SandboxError, CommandExitError, FilesystemEventType } = require(code ? '@e2b/code-interpreter' : 'e2b')
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
class Lacking extends Error {}
// the features that the service has not
const without = (process.env.E2B_WITHOUT ?? '').split(' ')

async function until (call) {
  for (let i = 0; i < 600; i++) {
    if (await call()) return
    await sleep(100)
  }
  throw new Error('it never comes')
}

const cases = {
  async run (s) {
    const r = await s.commands.run('echo out; echo err >&2; pwd; id -un')
    assert.deepEqual([r.stdout, r.stderr, r.exitCode], ['out\n/home/user\nuser\n', 'err\n', 0])
    assert.equal((await s.commands.run('id -u', { user: 'root' })).stdout, '0\n')
    assert.equal((await s.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
    await assert.rejects(s.commands.run('exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3)
    await assert.rejects(s.commands.run('sleep 60', { timeoutMs: 1000 }))
  },
  async stream (s) {
    const got = []
    await s.commands.run('for i in 1 2 3; do echo $i; sleep 0.2; done', { onStdout: (d) => got.push([d, Date.now()]) })
    assert.equal(got.map((g) => g[0]).join(''), '1\n2\n3\n')
    assert.ok(got.at(-1)[1] - got[0][1] > 200)
    const h = await s.commands.run('sleep 60', { background: true })
    assert.ok((await s.commands.list()).some((p) => p.pid === h.pid))
    assert.deepEqual([await s.commands.kill(h.pid), await s.commands.kill(999999)], [true, false])
    await assert.rejects(h.wait(), CommandExitError)
    const c = await s.commands.run('sleep 1; echo later', { background: true })
    await c.disconnect()
    assert.equal((await (await s.commands.connect(c.pid)).wait()).stdout, 'later\n')
  },
  async stdin (s) {
    const h = await s.commands.run('read a; echo $a', { background: true, stdin: true })
    await s.commands.sendStdin(h.pid, 'Hello, World!\n')
    assert.equal((await h.wait()).stdout, 'Hello, World!\n')
  },
  async envs (s) {
    assert.equal((await s.commands.run('echo $FOO $BAR', { envs: { BAR: 'b' } })).stdout, 'f b\n')
  },
  async pty (s) {
    let text = ''
    const t = await s.pty.create({ cols: 80, rows: 24, cwd: '/', envs: { ABC: '123' }, onData: (d) => { text += Buffer.from(d) } })
    await s.pty.resize(t.pid, { cols: 100, rows: 24 })
    await s.pty.sendInput(t.pid, Buffer.from('echo $ABC; stty size\nexit\n'))
    assert.equal((await t.wait()).exitCode, 0)
    assert.ok(text.includes('123') && text.includes('24 100'), text)
  },
  async files (s) {
    assert.equal((await s.files.write('d/a.txt', 'text')).path, '/home/user/d/a.txt')
    assert.equal(await s.files.read('d/a.txt'), 'text')
    assert.deepEqual([...await s.files.read('d/a.txt', { format: 'bytes' })], [...Buffer.from('text')])
    assert.equal(await (await s.files.read('d/a.txt', { format: 'blob' })).text(), 'text')
    await s.files.write([{ path: 'd/1', data: 'one' }, { path: 'd/2', data: new Blob(['two']) }])
    assert.deepEqual((await s.files.list('d')).map((e) => e.name), ['1', '2', 'a.txt'])
    assert.deepEqual([await s.files.makeDir('e'), await s.files.makeDir('e'), await s.files.exists('no')], [true, false, false])
    const i = await s.files.getInfo('d/a.txt')
    assert.deepEqual([i.size, i.mode, i.permissions, i.owner], [4, 0o644, '-rw-r--r--', 'user'])
    assert.equal((await s.files.rename('d/a.txt', 'e/b')).path, '/home/user/e/b')
    await s.files.remove('d')
    assert.equal(await s.files.exists('d'), false)
    await assert.rejects(s.files.read('none'))
  },
  async watch (s) {
    const seen = []
    await s.files.makeDir('w')
    const h = await s.files.watchDir('w', (e) => seen.push(e.type + ' ' + e.name), { recursive: true })
    await s.files.write('w/new', '1')
    await until(() => seen.includes(FilesystemEventType.WRITE + ' new'))
    assert.deepEqual(seen.slice(0, 3), ['create new', 'chmod new', 'write new'])
    await s.files.makeDir('w/x')
    await s.files.write('w/x/y', '2')
    await until(() => seen.includes('write x/y'))
    await s.files.remove('w/new')
    await until(() => seen.includes('remove new'))
    await h.stop()
    await assert.rejects(s.files.watchDir('none', () => 0))
  },
  async urls (s) {
    const form = new FormData()
    form.append('file', new Blob(['up']), 'up.txt')
    const url = await s.uploadUrl('up.txt', { user: 'user', useSignatureExpiration: 60000 })
    assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200)
    assert.equal(await (await fetch(await s.downloadUrl('up.txt', { user: 'user' }))).text(), 'up')
    assert.equal((await fetch(await s.downloadUrl('up.txt', { user: 'user', useSignatureExpiration: -60 }))).status, 401)
  },
  async host (s) {
    const h = await s.commands.run('exec python3 -m http.server 8001', { background: true, cwd: '/etc' })
    const url = 'https://' + s.getHost(8001) + '/hostname'
    await until(async () => (await fetch(url)).status === 200)
    assert.equal((await fetch('https://' + s.getHost(3009))).status, 502)
    await h.kill()
  },
  async metadata (s) {
    const p = await Sandbox.create({ metadata: { test: 'x y&\u017e' } })
    try {
      const found = await Sandbox.list({ query: { metadata: { test: 'x y&\u017e' } } }).nextItems()
      assert.deepEqual(found.map((i) => i.sandboxId), [p.sandboxId])
      const all = []
      for (const pages = Sandbox.list({ limit: 1 }); pages.hasNext;) all.push(...await pages.nextItems())
      assert.ok(all.some((i) => i.sandboxId === s.sandboxId) && all.length > 1)
    } finally {
      await p.kill()
    }
  },
  async timeout () {
    const p = await Sandbox.create({ timeoutMs: 30000 })
    await p.setTimeout(600000)
    const i = await p.getInfo()
    assert.ok(i.endAt - i.startedAt > 500000)
    await p.setTimeout(1000)
    await sleep(2500)
    assert.equal(await p.isRunning(), false)
  },
  async connect (s) {
    await s.files.write('kept', 'here')
    const end = (await s.getInfo()).endAt
    const t = await Sandbox.connect(s.sandboxId, { timeoutMs: 10000 })
    assert.equal(await t.files.read('kept'), 'here')
    assert.deepEqual((await s.getInfo()).endAt, end)
  },
  async pause () {
    const p = await Sandbox.create()
    try {
      const h = await p.commands.run('sleep 600', { background: true })
      await (p.pause ?? p.betaPause).call(p)
      assert.deepEqual([await p.isRunning(), (await p.getInfo()).state], [false, 'paused'])
      const q = await Sandbox.connect(p.sandboxId)
      assert.ok((await q.commands.list()).some((i) => i.pid === h.pid))
    } finally {
      assert.equal(await p.kill(), true)
    }
  },
  async pause_files () {
    let p = await Sandbox.create({ envs: { A: '1' } })
    try {
      for (const turn of '12') {
        await p.commands.run(`mkdir -p d; echo ${turn} >>d/kept; chmod 700 d`)
        const h = await p.commands.run('sleep 600', { background: true })
        const ended = h.wait().catch(() => {})
        assert.equal(await p.pause({ keepMemory: false }), true)
        await ended
        assert.deepEqual([await p.isRunning(), (await p.getInfo()).state], [false, 'paused'])
        p = await Sandbox.connect(p.sandboxId)
        assert.deepEqual((await p.commands.list()).filter((i) => i.pid === h.pid), [])
      }
      assert.equal((await p.commands.run('cat d/kept; stat -c %a d; echo $A')).stdout, '1\n2\n700\n1\n')
    } finally {
      assert.equal(await p.kill(), true)
    }
  },
  async network () {
    if (without.includes('network')) throw new Lacking()
    const p = await Sandbox.create({ network: { allowOut: ['1.1.1.1'], denyOut: ['0.0.0.0/0'], allowPublicTraffic: false } })
    try {
      const url = 'https://' + p.getHost(8001)
      assert.equal((await fetch(url)).status, 403)
      assert.equal((await fetch(url, { headers: { 'E2b-Traffic-Access-Token': p.trafficAccessToken } })).status, 502)
      assert.deepEqual((await p.getInfo()).network.allowOut, ['1.1.1.1'])
      await p.updateNetwork({ denyOut: ['0.0.0.0/0'] })
      const { network } = await p.getInfo()
      assert.deepEqual([network.allowOut ?? [], network.denyOut], [[], ['0.0.0.0/0']])
      await assert.rejects(p.commands.run('exec 3<>/dev/tcp/1.1.1.1/80; echo >&3; read <&3'), CommandExitError)
    } finally {
      await p.kill()
    }
    await assert.rejects(Sandbox.create({ network: { allowOut: ['10.0.0.1'], denyOut: ['0.0.0.0/0'] } }), SandboxError)
  },
  async copies (s) {
    if (without.includes('copies')) throw new Lacking()
    await s.files.write('copied', 'first')
    const made = await s.createSnapshot({ name: 'copy' })
    const all = (await s.fork({ count: 2, timeoutMs: 60000 })).map((f) => f.sandbox ?? f)
    try {
      await all[0].files.write('copied', 'other')
      assert.deepEqual(await Promise.all([...all, s].map((p) => p.files.read('copied'))), ['other', 'first', 'first'])
      const found = await Sandbox.listSnapshots({ sandboxId: s.sandboxId }).nextItems()
      assert.deepEqual(found.map((i) => i.snapshotId), [made.snapshotId])
      all.push(await Sandbox.create(made.snapshotId, { timeoutMs: 60000 }))
      assert.equal((await all[2].commands.run('cat copied; pwd; id -un')).stdout, 'first/home/user\nuser\n')
    } finally {
      for (const p of all) assert.equal(await p.kill(), true)
      assert.deepEqual([await Sandbox.deleteSnapshot(made.snapshotId), await Sandbox.deleteSnapshot(made.snapshotId)], [true, false])
    }
  },
  async git (s) {
    await s.git.init('r', { initialBranch: 'main' })
    await s.files.write('r/a', '1')
    assert.deepEqual((await s.git.status('r')).fileStatus.map((f) => [f.name, f.status]), [['a', 'untracked']])
    await s.git.add('r')
    await s.git.commit('r', 'one', { authorName: 'n', authorEmail: 'n@e.example' })
    await s.git.createBranch('r', 'other')
    const { branches, currentBranch } = await s.git.branches('r')
    assert.deepEqual([currentBranch, branches.sort()], ['other', ['main', 'other']])
    await s.git.clone('file:///home/user/r', { path: 'c', branch: 'main' })
    assert.equal((await s.git.status('c')).isClean, true)
    await assert.rejects(s.git.clone('file:///home/user/none', { path: 'd' }))
  },
  async metrics (s) {
    const m = await s.getMetrics()
    assert.ok(m.length > 0 && m[0].cpuCount > 0 && m[0].memTotal > 0)
  },
  async kill () {
    const p = await Sandbox.create()
    const h = await p.commands.run('sleep 60', { background: true })
    const ended = assert.rejects(h.wait())
    assert.equal(await p.kill(), true)
    await ended
    assert.deepEqual([await p.kill(), await p.isRunning()], [false, false])
  },
  async run_code (s) {
    if (!code) throw new Lacking()
    await s.runCode('x = 40')
    assert.equal((await s.runCode('x + 2')).text, '42')
    const out = []
    const r = await s.runCode("import sys; print('o'); print('e', file=sys.stderr)", { onStdout: (m) => out.push(m.line) })
    assert.deepEqual([r.logs.stdout, r.logs.stderr, out], [['o\n'], ['e\n'], ['o\n']])
    assert.equal((await s.runCode('1/0')).error.name, 'ZeroDivisionError')
    const c = await s.createCodeContext({ cwd: '/tmp' })
    assert.equal((await s.runCode('import os; os.getcwd()', { context: c })).text, '/tmp')
    assert.equal((await s.runCode("os.environ['Q']", { context: c, envs: { Q: 'q' } })).text, 'q')
  },
  async async (s) {
    const all = await Promise.all([...Array(20).keys()].map((i) => s.commands.run('echo ' + i)))
    assert.deepEqual(all.map((r) => r.stdout), [...Array(20).keys()].map((i) => i + '\n'))
  }
}

let bad = 0
const s = await Sandbox.create({ timeoutMs: 300000, envs: { FOO: 'f' } })
console.log('pass create')
for (const [name, call] of Object.entries(cases)) {
  try {
    await call(s)
    console.log('pass ' + name)
  } catch (e) {
    if (e instanceof Lacking) {
      console.log('- ' + name)
      continue
    }
    bad = 1
    console.log(e)
    console.log('fail ' + name + ' ' + String(e.message).split('\n')[0].slice(0, 200))
  }
}
await s.kill()
process.exit(bad)
