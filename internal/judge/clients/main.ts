// SPDX-License-Identifier: Apache-2.0

// The program of the TypeScript client: a token, then a signature, with nothing but
// what @hey-api/openapi-ts made of /openapi.json.
import { client } from './gen/client.gen';
import { signDocument, token } from './gen/sdk.gen';

declare const process: { argv: string[]; exit(code: number): never };

type Order = { Server: string; Username: string; Password: string; ClientID: string; Resource: string; Document: string };

async function main(order: Order): Promise<void> {
  client.setConfig({ baseUrl: order.Server });
  const granted = await token({
    body: { grant_type: 'password', username: order.Username, password: order.Password, client_id: order.ClientID, resource: order.Resource },
  });
  if (granted.data === undefined) throw new Error('no token: ' + JSON.stringify(granted.error));
  const answer = await signDocument({
    auth: granted.data.access_token,
    headers: { 'Idempotency-Key': 'the key of the TypeScript client' },
    body: { Content: order.Document, Signature: { Type: 'CAdES', Parameters: { IsDetached: 'True', CADESType: 'BES' } } },
  });
  if (answer.data === undefined) throw new Error('no signature: ' + JSON.stringify(answer.error));
  if (typeof answer.data !== 'string') throw new Error('a batch was answered');
  // What is wrong comes with a type as well.
  const refused = await signDocument({ body: { Content: order.Document } });
  if (refused.error?.error !== 'invalid_token') throw new Error('without a token: ' + JSON.stringify(refused.error));
  console.log(JSON.stringify(answer.data));
}

main(JSON.parse(process.argv[2]!) as Order).catch((e) => {
  console.error(e);
  process.exit(1);
});
