// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestVerifyPower verifies a document together with a power of attorney and its signature, in one upload.
func TestVerifyPower(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	token := server.Token()
	issue := func(id sigtest.Identifiers) int64 {
		t.Helper()
		args := []string{"cert", "issue", server.Dev.User.Login, "--json", "--data", server.Dir, "--subject", "CN=" + id.Surname}
		for name, value := range map[string]string{"INN": id.INN, "SNILS": id.SNILS, "INNLE": id.INNLE, "OGRN": id.OGRN} {
			if value != "" {
				args = append(args, "--subject", name+"="+value)
			}
		}
		var issued struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal([]byte(server.MustRun(args...)), &issued); err != nil || issued.ID == 0 {
			t.Fatal(err)
		}
		return issued.ID
	}
	head, employee := issue(sigtest.Head), issue(sigtest.Employee)
	sign := func(content []byte, cert int64) string {
		return string(server.Signed("POST", "/api/documents", token, tamgatest.Request(content, "CAdES", cert, tamgatest.Parameters{"IsDetached": "True", "CADESType": "BES"})))
	}
	b := pagetest.New(t, server)
	b.Header.Set("Accept-Language", "ru")
	file := func(name, content string) pagetest.File {
		return pagetest.File{Field: "file", Name: name, Content: content}
	}
	contract := []pagetest.File{file("contract.txt", "contract"), file("contract.txt.sig", sign([]byte("contract"), employee))}
	power := func(name string, change func(p *sigtest.Power)) []pagetest.File {
		p := sigtest.NewPower()
		p.From, p.Until = "2020-01-01", "2120-12-31"
		change(&p)
		document := p.XML()
		return []pagetest.File{file("power.xml", string(document)), file(name, sign(document, head))}
	}
	good := power("power.xml.sig", func(*sigtest.Power) {})
	b.Shows(b.Upload("/verify", nil, append(good, contract...)...), "<h1>Подпись действительна</h1>", "Доверенность "+sigtest.NewPower().Number+", действует с 2020-01-01 по 2120-12-31",
		"От Общество (INN 7707083893) для Иванов Иван Иванович (INN 123456789012)", "Даёт полномочия: BBR_1", "Доверенность: в порядке; подписавший: в порядке; полномочия: в порядке; документ: в порядке")
	// The signature of the power is found by its digest, too.
	wrong := power("other name.sig", func(p *sigtest.Power) { p.Representatives[0].SNILS = "99999999999" })
	b.Shows(b.Upload("/verify", nil, append(wrong, contract...)...), "<h1>Подпись недействительна: доверенность не для подписавшего</h1>", "ИНН, СНИЛС или ОГРН в сертификате не тот, что в доверенности", "подписавший: НЕ в порядке")
	b.Shows(b.Upload("/verify", map[string]string{"answer": "etsi.3"}, append(wrong, contract...)...), "urn:etsi:019102:mainindication:total-failed")
	// A power that is not signed, and a power alone, which is a document like any other.
	b.Shows(b.Upload("/verify", nil, append(good[:1:1], contract...)...), "<h1>Подпись недействительна: доверенность не годится</h1>", "Доверитель не подписал доверенность")
	p := b.Shows(b.Upload("/verify", nil, good...), "power.xml.sig + power.xml</a>")
	if strings.Contains(p.Text, "действует с 2020-01-01") {
		t.Error("a power is judged by itself")
	}
}
