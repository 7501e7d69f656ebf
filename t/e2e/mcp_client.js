// The client of the SDK, told what to do by lines of JSON on stdin; it answers each with a line.
// node mcp_client.js NODE_MODULES sse|shttp URL [KEY], or stdio COMMAND [WORD...]
'use strict';
const [modules, kind, url, key] = process.argv.slice(2);
const load = require('module').createRequire(modules + '/x.js');
const sdk = '@modelcontextprotocol/sdk/';
const {Client} = load(sdk + 'client/index.js');
const types = load(sdk + 'types.js');
const {SSEClientTransport} = load(sdk + 'client/sse.js');
const {StdioClientTransport} = load(sdk + 'client/stdio.js');
const {StreamableHTTPClientTransport} = load(sdk + 'client/streamableHttp.js');

const headers = key ? {Authorization: 'Bearer ' + key, 'X-Session-API-Key': key} : {};
const init = {requestInit: {headers}};
if (kind === 'sse')
  init.eventSourceInit = {fetch: (u, i) => fetch(u, {...i, headers: {...headers, Accept: 'text/event-stream'}})};
const Transport = kind === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
const client = new Client({name: 'test', version: '1'});
const say = value => process.stdout.write(JSON.stringify(value) + '\n');

let changes = 0, changed = null;
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => {
  changes++;
  if (changed) changed();
});

const commands = {
  connect: async () => {
    await client.connect(kind === 'stdio' ?
      new StdioClientTransport({command: url, args: process.argv.slice(5), env: process.env}) :
      new Transport(new URL(url), init));
    return {server: client.getServerVersion(), capabilities: client.getServerCapabilities()};
  },
  tools: async () => (await client.listTools()).tools,
  prompts: async () => (await client.listPrompts()).prompts,
  resources: async () => (await client.listResources()).resources,
  read: async c => client.readResource({uri: c.uri}),
  prompt: async c => client.getPrompt({name: c.name, arguments: c.args}),
  call: async c => {
    const progress = [];
    const options = c.progress ? {onprogress: p => progress.push(p.progress) === 1 && say({began: true})} : {};
    const result = await client.callTool({name: c.name, arguments: c.args || {}}, undefined, options);
    return c.progress ? {result, progress} : result;
  },
  cancel: async c => {
    const abort = new AbortController();
    const call = client.callTool({name: c.name, arguments: c.args || {}}, undefined,
      {signal: abort.signal, onprogress: () => abort.abort('enough')});
    return call.then(result => ({result}), error => ({cancelled: String(error)}));
  },
  changed: () => new Promise(resolve => {
    const look = () => changes > 0 && (changes = 0, changed = null, resolve(true));
    changed = look;
    look();
  }),
  close: async () => client.close(),
};

require('readline').createInterface({input: process.stdin}).on('line', async line => {
  const c = JSON.parse(line);
  try {
    say({ok: await commands[c.do](c) ?? null});
  } catch (error) {
    say({error: error.message, code: error.code ?? null});
  }
}).on('close', () => process.exit(0));
