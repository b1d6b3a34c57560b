// SPDX-License-Identifier: Apache-2.0

// A message centre of the npm package smpp, for tests. It prints its port, and then
// each message it takes as a line of JSON. It knows one caller, and answers the
// numbers in REFUSE, "NUMBER:STATUS,...", with a status.
'use strict';
const smpp = require('smpp');

const refuse = new Map((process.env.REFUSE || '').split(',').filter(Boolean).map((pair) => {
	const [number, status] = pair.split(':');
	return [number, Number(status)];
}));
let taken = 0;

const server = smpp.createServer((session) => {
	let bound = false;
	const bind = (pdu) => {
		bound = pdu.system_id === 'tamga' && pdu.password === 'secret12';
		session.send(pdu.response(bound ? {} : { command_status: smpp.ESME_RINVPASWD }));
	};
	session.on('bind_transceiver', bind);
	session.on('bind_transmitter', bind);
	session.on('enquire_link', (pdu) => session.send(pdu.response()));
	session.on('unbind', (pdu) => { session.send(pdu.response()); session.close(); });
	session.on('submit_sm', (pdu) => {
		if (!bound) {
			session.send(pdu.response({ command_status: smpp.ESME_RINVBNDSTS }));
			return;
		}
		const status = refuse.get(pdu.destination_addr) || 0;
		if (status === 0) {
			const udh = pdu.short_message.udh || [];
			console.log(JSON.stringify({
				from: pdu.source_addr, from_ton: pdu.source_addr_ton, from_npi: pdu.source_addr_npi,
				to: pdu.destination_addr, to_ton: pdu.dest_addr_ton, to_npi: pdu.dest_addr_npi,
				coding: pdu.data_coding, text: pdu.short_message.message,
				parts: udh.map((element) => Array.from(element)),
			}));
			// A receipt that was not asked for: the caller has to answer it.
			session.deliver_sm({ source_addr: pdu.destination_addr, destination_addr: pdu.source_addr, esm_class: 4, short_message: 'stat:DELIVRD' },
				(answer) => console.log(JSON.stringify({ receipt: answer.command_status })));
		}
		session.send(pdu.response({ command_status: status, message_id: String(++taken) }));
	});
	session.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on('end', () => process.exit(0)).resume();
