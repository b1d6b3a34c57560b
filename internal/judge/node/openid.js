// SPDX-License-Identifier: Apache-2.0

// A client of OpenID Connect made of the npm package openid-client, for tests. It takes
// one order as JSON on its input, signs a user in as a browser would, and prints what it
// came to know as JSON. openid-client judges the discovery document, the answers, the
// signature and the claims of the ID token, and the userinfo; whatever it does not
// accept ends the program.
'use strict';
const { Issuer, generators } = require('openid-client');

async function main(order) {
	const issuer = await Issuer.discover(order.issuer);
	const client = new issuer.Client({
		client_id: order.client_id,
		client_secret: order.client_secret || undefined,
		token_endpoint_auth_method: order.client_secret ? order.method : 'none',
		redirect_uris: [order.redirect_uri],
		response_types: ['code'],
		id_token_signed_response_alg: 'ES256',
	});
	const verifier = generators.codeVerifier();
	const checks = { state: generators.state(), nonce: generators.nonce(), code_verifier: verifier, response_type: 'code' };
	const address = client.authorizationUrl({
		scope: order.scope,
		resource: order.resource || undefined,
		state: checks.state,
		nonce: checks.nonce,
		code_challenge: generators.codeChallenge(verifier),
		code_challenge_method: 'S256',
	});

	// What a browser and its user do.
	const page = await fetch(address, { redirect: 'manual' });
	if (page.status !== 200) throw new Error('the login page: ' + page.status + ' ' + await page.text());
	const cookie = page.headers.get('set-cookie').split(';')[0];
	const text = await page.text();
	const ticket = /name="ticket" value="([^"]+)"/.exec(text)[1];
	const action = /action="([^"]+)"/.exec(text)[1];
	const answer = await fetch(action, {
		method: 'POST', redirect: 'manual',
		headers: { cookie },
		body: new URLSearchParams({ ticket, login: order.login, password: order.password }),
	});
	if (answer.status !== 303) throw new Error('after the login: ' + answer.status + ' ' + await answer.text());

	const parameters = client.callbackParams(answer.headers.get('location'));
	const tokens = await client.callback(order.redirect_uri, parameters, checks);
	const out = { claims: tokens.claims(), access_token: tokens.access_token, scope: tokens.scope };
	out.userinfo = await client.userinfo(tokens); // checks that sub is the one of the ID token
	if (tokens.refresh_token) {
		const next = await client.refresh(tokens.refresh_token);
		out.refreshed = next.access_token;
		out.rotated = next.refresh_token !== tokens.refresh_token;
	}
	return out;
}

let input = '';
process.stdin.on('data', (chunk) => { input += chunk; }).on('end', () => {
	main(JSON.parse(input)).then((out) => console.log(JSON.stringify(out)), (err) => {
		console.error(err);
		process.exit(1);
	});
});
