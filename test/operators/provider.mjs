// An OpenID provider. It prints its issuer, and answers once it has read a line with a client and
// accounts; each further line replaces the accounts. It prints "done" after each line.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Provider } from 'oidc-provider';

let accounts = {};
let answer = (_, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));
server.listen(0, '127.0.0.1');
await new Promise((listening) => server.once('listening', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
console.log(issuer);

for await (const line of createInterface({ input: process.stdin })) {
  const told = JSON.parse(line);
  accounts = told.accounts;
  if (told.client) {
    answer = provider(told.client).callback();
  }
  console.log('done');
}
process.exit(0);

function provider(client) {
  return new Provider(issuer, {
    clients: [client],
    claims: { email: ['email', 'email_verified'], groups: ['groups'] },
    cookies: { keys: ['of a test'] },
    pkce: { required: () => true },
    findAccount: (_, id) => accounts[id] && { accountId: id, claims: () => ({ sub: id, ...accounts[id] }) },
    // Nobody is asked whether the service may know the address.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: client.client_id });
      grant.addOIDCScope('openid email groups');
      await grant.save();
      return grant;
    },
  });
}
