// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"

	"github.com/alecthomas/kong"
)

// examples are the command lines at the end of each help and manual page, by command. A test parses
// them all.
var examples = map[string][]string{
	"init":                        {"tamga init", "tamga init --yes --public-url https://sign.example.org --config /etc/tamga/tamga.yaml --data /var/lib/tamga", "tamga init --yes --public-url https://sign.example.org --parent authority.pem --tsp main=http://tsp.example.org/tsp", "tamga init --yes --public-url https://sign.example.org --database postgres://tamga@db.example.org/tamga --database-password-file db.password"},
	"doctor":                      {"tamga doctor --config tamga.yaml", "tamga doctor --json --config tamga.yaml"},
	"serve":                       {"tamga serve --dev", "tamga serve --config /etc/tamga/tamga.yaml"},
	"ready":                       {"tamga ready --config /etc/tamga/tamga.yaml"},
	"sign":                        {"tamga sign letter.txt", "tamga sign contract.pdf --type auto", "tamga sign - --attached -o letter.p7m", "tamga sign letter.txt --type GOST3410 -o letter.raw"},
	"verify":                      {"tamga verify letter.txt.sig --ca ca.pem", "tamga verify contract.pdf --ca ca.pem --crl ca.crl --json", "tamga verify - --original letter.txt", "tamga verify letter.txt.sig contract.signed.pdf --ca ca.pem --json", "tamga verify letter.txt.sig --ca ca.pem --power power.xml,power.xml.sig"},
	"enhance":                     {"tamga enhance contract.pdf", "tamga enhance archive/", "tamga enhance letter.txt.sig --document letter.txt --level T", "tamga enhance contract.pdf --tsa http://tsp.example.org/tsp --ca roots.pem", "tamga enhance archive.xml --in-place --tsa http://tsp.example.org/tsp --ca roots.pem"},
	"encrypt":                     {"tamga encrypt letter.txt --to anna.pem", "tamga encrypt letter.txt --to anna.pem --to partners --algorithm Kuznyechik --offline", "tamga encrypt act.xml --to anna.pem --type XML"},
	"decrypt":                     {"tamga decrypt letter.txt.p7m", "tamga decrypt letter.txt.p7m --key anna.p12", "tamga decrypt - --key anna.p12 --key-password-file password"},
	"card make":                   {"tamga card make contract.pdf contract.pdf.sig", "tamga card make letter.txt --report", "tamga card make contract.pdf --offline --ca ca.pem -o contract.card.pdf"},
	"card open":                   {"tamga card open contract.pdf.card.pdf --ca ca.pem", "tamga card open contract.card.pdf -o contract --json"},
	"migrate":                     {"tamga migrate --config tamga.yaml"},
	"backup make":                 {"tamga backup /backup/2026-11-23 --config tamga.yaml", "tamga backup /backup/2026-11-23 --recipient age1m3l99nw5h5cakmj5hkk7uluu5esrgzy4vwvhu0zvdkvk2ensyueq22x6x2 --config tamga.yaml", "tamga backup /backup --keep 14 --config tamga.yaml"},
	"backup verify":               {"tamga backup verify /backup/2026-11-23"},
	"restore adopt":               {"tamga restore adopt --taken-at 2026-11-23T12:00:00Z --config tamga.yaml"},
	"restore from":                {"tamga restore /backup/2026-11-23 --config tamga.yaml", "tamga restore /backup/2026-11-23 --identity-file age.key --config tamga.yaml"},
	"restore unknown":             {"tamga restore unknown --crl gost.crl --config tamga.yaml"},
	"restore release":             {"tamga restore release --crl gost.crl --yes --config tamga.yaml"},
	"user add":                    {"tamga user add petrov --group Default --name 'Petrov P. P.' --config tamga.yaml"},
	"user list":                   {"tamga user list --json --config tamga.yaml"},
	"user show":                   {"tamga user show petrov --config tamga.yaml"},
	"user lock":                   {"tamga user lock petrov --config tamga.yaml"},
	"user unlock":                 {"tamga user unlock petrov --config tamga.yaml"},
	"user logout":                 {"tamga user logout petrov --config tamga.yaml"},
	"user sessions":               {"tamga user sessions petrov --config tamga.yaml"},
	"user password":               {"tamga user password petrov --config tamga.yaml"},
	"user deny":                   {"tamga user deny petrov SignDocument --config tamga.yaml"},
	"user allow":                  {"tamga user allow petrov SignDocument --config tamga.yaml"},
	"user method list":            {"tamga user method list petrov --config tamga.yaml"},
	"user method add":             {"tamga user method add petrov oath --config tamga.yaml"},
	"user method remove":          {"tamga user method remove petrov oath --config tamga.yaml"},
	"user certificate add":        {"tamga user certificate add petrov petrov.pem --config tamga.yaml"},
	"user certificate list":       {"tamga user certificate list petrov --config tamga.yaml"},
	"user certificate remove":     {"tamga user certificate remove petrov " + exampleThumbprint + " --config tamga.yaml"},
	"user delete":                 {"tamga user delete petrov --yes --config tamga.yaml"},
	"import":                      {"tamga import users.csv --group Default --dry-run --config tamga.yaml", "tamga import users.json --json --config tamga.yaml"},
	"group add":                   {"tamga group add Default --title 'All users' --config tamga.yaml"},
	"group list":                  {"tamga group list --config tamga.yaml"},
	"group rename":                {"tamga group rename Default Clerks --config tamga.yaml"},
	"group delete":                {"tamga group delete Branch --config tamga.yaml"},
	"directory list":              {"tamga directory list --config tamga.yaml"},
	"directory sync":              {"tamga directory sync corp --dry-run --config tamga.yaml", "tamga directory sync corp --config tamga.yaml"},
	"directory unlink":            {"tamga directory unlink petrov --config tamga.yaml", "tamga directory unlink petrov --forget --config tamga.yaml"},
	"operator add":                {"tamga operator add olga --group Default --config tamga.yaml"},
	"operator list":               {"tamga operator list --config tamga.yaml"},
	"operator groups":             {"tamga operator groups olga --group Default --group Branch --config tamga.yaml"},
	"operator delete":             {"tamga operator delete olga --yes --config tamga.yaml"},
	"operator certificate add":    {"tamga operator certificate add olga olga.pem --config tamga.yaml"},
	"operator certificate list":   {"tamga operator certificate list olga --config tamga.yaml"},
	"operator certificate remove": {"tamga operator certificate remove olga " + exampleThumbprint + " --config tamga.yaml"},
	"cert issue":                  {"tamga cert issue petrov --default --config tamga.yaml", "tamga cert issue petrov --suite gost2012-512 --subject INN=007700000000 --pin-file pin --config tamga.yaml"},
	"cert list":                   {"tamga cert list petrov --config tamga.yaml"},
	"cert default":                {"tamga cert default petrov 2 --config tamga.yaml"},
	"cert revoke":                 {"tamga cert revoke 2 --reason 1 --config tamga.yaml"},
	"cert unhold":                 {"tamga cert unhold 2 --config tamga.yaml"},
	"key import":                  {"tamga key import petrov petrov.p12 --config tamga.yaml"},
	"key export":                  {"tamga key export 2 -o petrov.p12 --config tamga.yaml"},
	"ca list":                     {"tamga ca list --config tamga.yaml"},
	"ca export":                   {"tamga ca export -o roots.pem --config tamga.yaml", "tamga ca export --all --cross --config tamga.yaml"},
	"ca renew":                    {"tamga ca renew gost --config tamga.yaml"},
	"ca request":                  {"tamga ca request gost -o gost.csr --config tamga.yaml", "tamga ca request gost --subject 'CN=Example Signing CA' --subject OGRN=1027700132195 -o gost.csr --config tamga.yaml"},
	"ca install":                  {"tamga ca install gost gost.pem --config tamga.yaml"},
	"ca rollover":                 {"tamga ca rollover gost --config tamga.yaml", "tamga ca rollover ecdsa --issuing-only --yes --config tamga.yaml"},
	"key status":                  {"tamga key status --config tamga.yaml"},
	"key rotate":                  {"tamga key rotate --config tamga.yaml", "tamga key rotate --id 2027 --wait 10m --config tamga.yaml"},
	"key reseal":                  {"tamga key reseal --config tamga.yaml"},
	"key split":                   {"tamga key split --shares 5 --threshold 3 -o shares --config tamga.yaml"},
	"key recover":                 {"tamga key recover -o master.key share-1.txt share-2.txt share-4.txt", "tamga key recover -o master.key"},
	"key rotate-tokens":           {"tamga key rotate-tokens --config tamga.yaml"},
	"key rotate-devices":          {"tamga key rotate-devices --config tamga.yaml", "tamga key rotate-devices --suite ecdsa-p256 --at-once --config tamga.yaml"},
	"request list":                {"tamga request list --config tamga.yaml"},
	"request approve":             {"tamga request approve 7 --config tamga.yaml"},
	"request reject":              {"tamga request reject 7 --config tamga.yaml"},
	"operation proof":             {"tamga operation proof ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"approval list":               {"tamga approval list --config tamga.yaml"},
	"approval approve":            {"tamga approval approve ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"approval refuse":             {"tamga approval refuse ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"tsp list":                    {"tamga tsp list --config tamga.yaml"},
	"tsp add":                     {"tamga tsp add main https://tsp.example.org/ --config tamga.yaml"},
	"tsp remove":                  {"tamga tsp remove main --config tamga.yaml"},
	"trust-list import":           {"tamga trust-list import TSL.xml --config tamga.yaml"},
	"trust-list show":             {"tamga trust-list show --config tamga.yaml"},
	"tsp check":                   {"tamga tsp check main --config tamga.yaml"},
	"gost-tls init":               {"tamga gost-tls init --name sign.example.org --config tamga.yaml"},
	"gost-tls check":              {"tamga gost-tls check --config tamga.yaml"},
	"gost-tls certify":            {"tamga gost-tls certify olga.csr -o olga.pem --config tamga.yaml"},
	"gost-tls revoke":             {"tamga gost-tls revoke olga.pem --config tamga.yaml"},
	"audit":                       {"tamga audit --since 24h --config tamga.yaml", "tamga audit --operation RegisterUser --limit 0 --json --config tamga.yaml"},
	"phone register":              {"tamga phone register --qr kinit.gif"},
	"phone verify":                {"tamga phone verify --qr verification.gif"},
	"phone push":                  {"tamga phone push --address TOKEN --os-type 2"},
	"phone poll":                  {"tamga phone poll"},
	"phone show":                  {"tamga phone show"},
	"phone list":                  {"tamga phone list --json"},
	"phone approve":               {"tamga phone approve ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10"},
	"phone decline":               {"tamga phone decline ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10"},
	"phone document":              {"tamga phone document ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 0 -o document.pdf"},
	"phone scan":                  {"tamga phone scan --qr operation.gif"},
	"phone code":                  {"tamga phone code --qr operation.gif"},
	"phone sign":                  {"tamga phone sign --qr operation.gif"},
	"phone send":                  {"tamga phone send"},
	"phone leave":                 {"tamga phone leave"},
	"token import":                {"tamga token import tokens.xml --key-file transport.key --config tamga.yaml"},
	"token list":                  {"tamga token list --free --config tamga.yaml"},
	"token unlock":                {"tamga token unlock 308205 --config tamga.yaml"},
	"token discard":               {"tamga token discard 308205 --config tamga.yaml"},
	"message list":                {"tamga message list --state dead --config tamga.yaml"},
	"message resend":              {"tamga message resend ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"message test":                {"tamga message test email anna@example.org --config tamga.yaml"},
	"policy show":                 {"tamga policy show --user petrov --config tamga.yaml"},
	"policy set":                  {"tamga policy set access --group Default --action DeleteCertificate --config tamga.yaml"},
	"policy clear":                {"tamga policy clear access --group Default --config tamga.yaml"},
	"webhook add":                 {"tamga webhook add https://events.example.org/tamga --config tamga.yaml"},
	"webhook list":                {"tamga webhook list --config tamga.yaml"},
	"webhook change":              {"tamga webhook change ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --event UserCreated --event UserDeleted --config tamga.yaml"},
	"webhook pause":               {"tamga webhook pause ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"webhook resume":              {"tamga webhook resume ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"webhook test":                {"tamga webhook test ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"webhook remove":              {"tamga webhook remove ca5d9ae7-6b43-4f53-a5a4-2b9a6f4c5d10 --config tamga.yaml"},
	"config check":                {"tamga config check --config tamga.yaml", "tamga config check --config tamga.yaml --json"},
	"support-bundle":              {"tamga support-bundle tamga-support.tar.gz --config tamga.yaml", "tamga support-bundle tamga-support.tar.gz --log /var/log/tamga.log --config tamga.yaml"},
	"version":                     {"tamga version --json"},
	"help":                        {"tamga help user add"},
	"completion":                  {"tamga completion bash > /etc/bash_completion.d/tamga", "tamga completion fish > ~/.config/fish/completions/tamga.fish"},
	"manual":                      {"tamga manual > tamga.1", "tamga manual sign > tamga-sign.1"},
}

// exampleThumbprint is the SHA-256 of a certificate.
const exampleThumbprint = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

const examplesTitle = "Examples:"

// addExamples puts the examples, under a title, below the text of each command. asStarted makes them
// fit for the shell.
func addExamples(model *kong.Application, title string, asStarted func(string) string) {
	eachCommand(model.Node, func(n *kong.Node) {
		list := examples[commandName(n)]
		if len(list) == 0 {
			return
		}
		// Four spaces make kong keep the lines.
		text := title + "\n\n    " + asStarted(strings.Join(list, "\n    "))
		if n.Detail != "" {
			text = n.Detail + "\n\n" + text
		}
		n.Detail = text
	})
}

// eachCommand calls visit for each command below a node, parents first.
func eachCommand(n *kong.Node, visit func(*kong.Node)) {
	for _, child := range n.Children {
		if child.Type == kong.CommandNode {
			visit(child)
			eachCommand(child, visit)
		}
	}
}

// commandName returns the words of a command: "user add".
func commandName(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}
