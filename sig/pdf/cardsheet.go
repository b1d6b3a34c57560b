// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/pdf/stamp"
)

// cardWords are the texts of a sheet of signatures in one language. The marks are in Russian, as GOST R 7.0.97 has them.
type cardWords struct {
	title, made, document, file, digest, attached string
	cover                                         map[string]string
	signature                                     string // with its number, and of how many
	owner, position, organization                 string
	certificate, validity, issuer                 string
	signed, claimed, stamped                      string
	checked                                       string
	verdicts                                      map[sig.Verdict]string
	where, inside, mark, onPage, onSheet          string
	report, leads, sheet                          string
	bytes                                         string
}

var cardLanguages = map[string]*cardWords{
	"ru": {
		title: "Лист электронных подписей", made: "Карточка электронного документа. Подписи проверены %s.",
		document: "Документ", file: "Имя и размер", digest: "Хэш, ГОСТ Р 34.11-2012, 256 бит",
		attached: "Документ и файлы подписей вложены в этот PDF без изменений. Подписи охватывают вложенный документ, а не эту карточку.",
		cover: map[string]string{
			coverOther:     "Страниц этого документа здесь нет: файл такого вида не показывается. Он вложен в карточку.",
			coverEncrypted: "Страниц этого документа здесь нет: он зашифрован. Он вложен в карточку.",
			coverBroken:    "Страниц этого документа здесь нет: структура его PDF не позволяет их добавить. Он вложен в карточку.",
		},
		signature: "Подпись %d из %d", owner: "Владелец сертификата", position: "Должность", organization: "Организация",
		certificate: "Сертификат", validity: "%s, с %s по %s", issuer: "Издатель",
		signed: "Подписано", claimed: "%s, по данным подписавшего", stamped: "%s, по штампу времени",
		checked: "Проверка",
		verdicts: map[sig.Verdict]string{
			sig.Passed: "подпись действительна", sig.Indeterminate: "документ не изменён; доверие к сертификату не установлено",
		},
		where: "Файл подписи", inside: "подпись внутри документа", mark: "Отметка", onPage: "на странице %d", onSheet: "на этом листе",
		report: "Отчёт о проверке № %s.", leads: "Код ведёт к отчёту: %s", sheet: "Лист электронных подписей, %d из %d. Хэш документа: %s…", bytes: "%s, байт: %d",
	},
	"en": {
		title: "Sheet of electronic signatures", made: "Card of an electronic document. The signatures were verified on %s.",
		document: "Document", file: "Name and size", digest: "Hash, GOST R 34.11-2012, 256 bits",
		attached: "The document and the files of its signatures are attached to this PDF, unchanged. The signatures cover the attached document and not this card.",
		cover: map[string]string{
			coverOther:     "The pages of this document are not here: a file of this kind is not shown. It is attached to the card.",
			coverEncrypted: "The pages of this document are not here: it is encrypted. It is attached to the card.",
			coverBroken:    "The pages of this document are not here: the structure of its PDF does not let them be added. It is attached to the card.",
		},
		signature: "Signature %d of %d", owner: "Owner of the certificate", position: "Position", organization: "Organization",
		certificate: "Certificate", validity: "%s, from %s to %s", issuer: "Issuer",
		signed: "Signed", claimed: "%s, as the signer says", stamped: "%s, by a time stamp",
		checked: "Verification",
		verdicts: map[sig.Verdict]string{
			sig.Passed: "the signature is valid", sig.Indeterminate: "the document is unchanged; trust in the certificate is not established",
		},
		where: "File of the signature", inside: "the signature is inside of the document", mark: "Mark", onPage: "on page %d", onSheet: "on this sheet",
		report: "Report of the verification No. %s.", leads: "The code leads to the report: %s", sheet: "Sheet of electronic signatures, %d of %d. Hash of the document: %s…", bytes: "%s, bytes: %d",
	},
}

func wordsOfCards(language string) *cardWords {
	if w := cardLanguages[language]; w != nil {
		return w
	}
	return cardLanguages["ru"]
}

// foot returns the text at the foot of the pages of the sheet.
func (m *cardMaker) foot(n, all int) string {
	return fmt.Sprintf(m.words.sheet, n, all, hex.EncodeToString(m.files[0].sum)[:16])
}

// inZone returns a time as the card shows it.
func (m *cardMaker) inZone(t time.Time) time.Time {
	if m.card.Zone == nil {
		return t
	}
	return t.In(m.card.Zone)
}

// grouped returns a digest in groups of eight digits, as people compare it.
func grouped(sum []byte) string {
	var parts []string
	for digits := hex.EncodeToString(sum); digits != ""; {
		n := min(8, len(digits))
		parts, digits = append(parts, digits[:n]), digits[n:]
	}
	return strings.Join(parts, " ")
}

// sheet returns the entries of the sheet of signatures.
func (m *cardMaker) sheet() (list []stamp.Entry) {
	w, c := m.words, m.card
	note := func(text string) { list = append(list, stamp.Entry{Kind: stamp.Note, Text: text}) }
	heading := func(text string) { list = append(list, stamp.Entry{Kind: stamp.Heading, Text: text}) }
	fact := func(label, text string) {
		if text != "" {
			list = append(list, stamp.Entry{Kind: stamp.Fact, Label: label, Text: stamp.Explained(text, m.card.Language)})
		}
	}
	list = append(list, stamp.Entry{Kind: stamp.Title, Text: w.title})
	note(fmt.Sprintf(w.made, stamp.When(m.inZone(c.Made))))
	heading(w.document)
	fact(w.file, fmt.Sprintf(w.bytes, m.files[0].Name, m.files[0].Document.Size()))
	fact(w.digest, grouped(m.files[0].sum))
	if m.cover != "" {
		note(w.cover[m.cover])
	}
	note(w.attached)
	for i := range c.Signers {
		s := &c.Signers[i]
		heading(fmt.Sprintf(w.signature, i+1, len(c.Signers)))
		mark := m.marks[i]
		if mark.page < 0 {
			list = append(list, stamp.Entry{Kind: stamp.Drawn, Mark: m.markRequest(s)})
		}
		cert := s.Certificate
		fact(w.owner, commonName(cert.Subject))
		fact(w.position, positionOf(cert.Subject))
		organization, _ := cert.Subject.Get(x509gost.OIDOrganization)
		fact(w.organization, organization)
		fact(w.certificate, fmt.Sprintf(w.validity, strings.ToUpper(cert.SerialHex()), m.day(cert.NotBefore), m.day(cert.NotAfter)))
		fact(w.issuer, commonName(cert.Issuer))
		if !s.Time.IsZero() {
			how := w.claimed
			if s.Stamped {
				how = w.stamped
			}
			fact(w.signed, fmt.Sprintf(how, stamp.When(m.inZone(s.Time))))
		}
		fact(w.checked, w.verdicts[s.Verdict])
		if s.File < 0 {
			fact(w.where, w.inside)
		} else {
			e := m.files[1+s.File]
			fact(w.where, fmt.Sprintf(w.bytes, e.Name, e.Document.Size()))
			fact(w.digest, grouped(e.sum))
		}
		if mark.page < 0 {
			fact(w.mark, w.onSheet)
		} else {
			fact(w.mark, fmt.Sprintf(w.onPage, mark.page+1))
		}
	}
	if r := c.Report; r.Address != "" && len(r.Code) > 0 {
		text := fmt.Sprintf(w.leads, r.Address)
		if r.Number != "" {
			text = fmt.Sprintf(w.report, r.Number) + " " + text
		}
		list = append(list, stamp.Entry{Kind: stamp.Code, Picture: r.Code, Text: text})
	}
	return list
}

func (m *cardMaker) day(t time.Time) string { return m.inZone(t).Format("02.01.2006") }
