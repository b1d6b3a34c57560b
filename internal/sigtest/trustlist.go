// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
)

// ListTemplate is the signature of a list of accredited authorities before it is filled, for a key of the party.
func (p *Party) ListTemplate() string {
	return `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo>` +
		`<CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/><SignatureMethod Algorithm="` + p.Suite.XML[0] + `"/>` +
		`<Reference URI=""><Transforms><Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/><Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></Transforms>` +
		`<DigestMethod Algorithm="` + p.Suite.Hash.XML[0] + `"/><DigestValue/></Reference></SignedInfo><SignatureValue/><KeyInfo><X509Data/></KeyInfo></Signature>`
}

// AuthorityList makes a list of accredited authorities with one authority, "Listed", of INN 7700000000. f is the XML format,
// which this package cannot import.
func (p *Party) AuthorityList(t testing.TB, f sig.Format, version int, date time.Time, status string, from time.Time, keys ...*x509gost.Certificate) []byte {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="utf-8"?><АккредитованныеУдостоверяющиеЦентры><Версия>%d</Версия><Дата>%s</Дата><УдостоверяющийЦентр><Название>Listed</Название>`+
		`<ПрограммноАппаратныеКомплексы><ПрограммноАппаратныйКомплекс><КлючиУполномоченныхЛиц>`, version, date.UTC().Format(time.RFC3339))
	for _, c := range keys {
		fmt.Fprintf(&b, `<Ключ><Сертификаты><ДанныеСертификата><Данные>%s</Данные></ДанныеСертификата></Сертификаты></Ключ>`, base64.StdEncoding.EncodeToString(c.Raw))
	}
	fmt.Fprintf(&b, `</КлючиУполномоченныхЛиц></ПрограммноАппаратныйКомплекс></ПрограммноАппаратныеКомплексы><ИНН>7700000000</ИНН><ОГРН>1027700000000</ОГРН><РеестровыйНомер>12</РеестровыйНомер>`+
		`<СтатусАккредитации><Статус>%s</Статус><ДействуетС>%s</ДействуетС></СтатусАккредитации></УдостоверяющийЦентр>%s</АккредитованныеУдостоверяющиеЦентры>`, status, from.UTC().Format(time.RFC3339), p.ListTemplate())
	return Make(t, f, p, &sig.Job{Document: Document([]byte(b.String())), Params: sig.Params{"XMLDsigType": "XMLTemplate"}})
}
