// SPDX-License-Identifier: Apache-2.0

package what

import (
	"encoding/hex"
	"fmt"
	"strings"

	"tamga/internal/domain/notify"
)

// Languages of texts.
const (
	Russian = "ru"
	English = "en"
)

// words are the texts of a language.
type words struct {
	actions                                                       map[string]string
	action, signature, certificate, documents, more, bytes, group string
	unknown                                                       string // a document of which only the hash is known
}

var languages = map[string]words{
	Russian: {
		actions: map[string]string{
			"Issue": "Выпуск токена доступа", "SignDocument": "Подписание документа", "SignDocuments": "Подписание документов",
			"DecryptDocument": "Расшифрование документа", "CreateRequest": "Запрос на сертификат", "ChangePin": "Смена ПИН-кода",
			"RenewCertificate": "Обновление сертификата", "RevokeCertificate": "Прекращение действия сертификата",
			"HoldCertificate": "Приостановление сертификата", "UnholdCertificate": "Возобновление сертификата",
			"DeleteCertificate": "Удаление сертификата", "PrivateKeyAccess": "Выгрузка закрытого ключа",
			SignIn: "Вход", Free: "Подтверждение", ChangeAccount: "Изменение учётной записи",
		},
		action: "Действие", signature: "Тип подписи", certificate: "Сертификат", documents: "Документов", more: "и ещё %d", bytes: "байт",
		group: "Контрольное число", unknown: "неизвестный документ, хэш",
	},
	English: {
		actions: map[string]string{
			"Issue": "Issue of an access token", "SignDocument": "Signing a document", "SignDocuments": "Signing documents",
			"DecryptDocument": "Decrypting a document", "CreateRequest": "Request for a certificate", "ChangePin": "Change of a PIN",
			"RenewCertificate": "Renewal of a certificate", "RevokeCertificate": "Revocation of a certificate",
			"HoldCertificate": "Hold of a certificate", "UnholdCertificate": "End of the hold of a certificate",
			"DeleteCertificate": "Deletion of a certificate", "PrivateKeyAccess": "Export of a private key",
			SignIn: "Sign-in", Free: "Confirmation", ChangeAccount: "Change of the account",
		},
		action: "Action", signature: "Signature type", certificate: "Certificate", documents: "Documents", more: "and %d more", bytes: "bytes",
		group: "Check number", unknown: "unknown document, hash",
	},
}

// ActionName returns the name of an action for people. lang is "ru" or "en"; any other
// language is Russian.
func ActionName(action, lang string) string {
	if name := wordsOf(lang).actions[action]; name != "" {
		return name
	}
	return notify.OneLine(action)
}

func wordsOf(lang string) words {
	if w, ok := languages[lang]; ok {
		return w
	}
	return languages[Russian]
}

// Limits of a shown text: the lines of documents and values, and the characters of each.
const (
	shownDocuments = 20
	shownValues    = 20
	shownLength    = 120
)

// Shown returns the text that the user sees before confirming, for each language. The
// fields must be valid.
func (f *Fields) Shown() (map[string]string, error) {
	sum, err := f.Sum()
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for lang, w := range languages {
		texts[lang] = f.shown(lang, w, sum)
	}
	return texts, nil
}

func (f *Fields) shown(lang string, w words, sum Digest) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, value) }
	values := func(list []Value) {
		for i, v := range list {
			if i == shownValues {
				fmt.Fprintf(&b, w.more+"\n", len(list)-i)
				break
			}
			text := v.Value
			if v.Digest != nil {
				text = hex.EncodeToString(v.Digest[:4])
			}
			line(Brief(v.Name, shownLength), Brief(text, shownLength))
		}
	}
	line(w.action, ActionName(f.Action, lang))
	if f.SignatureType != "" {
		line(w.signature, Brief(f.SignatureType, shownLength))
	}
	if len(f.Certificate) > 0 {
		line(w.certificate, hex.EncodeToString(f.Certificate[:4]))
	}
	values(f.Parameters.list)
	values(f.Arguments.list)
	if len(f.Documents) > 0 {
		line(w.documents, fmt.Sprint(len(f.Documents)))
	}
	// The documents of each way follow its type and parameters, and keep their numbers.
	ways, documents := f.InWays()
	most := max(shownDocuments/len(ways), 1)
	for i, way := range ways {
		if len(f.Ways) > 0 {
			line(w.signature, fmt.Sprintf("%s (%d)", Brief(way.SignatureType, shownLength), len(documents[i])))
			values(way.Parameters.list)
		}
		for n, at := range documents[i] {
			if n == most {
				fmt.Fprintf(&b, w.more+"\n", len(documents[i])-n)
				break
			}
			d := &f.Documents[at]
			if d.Hash != "" {
				fmt.Fprintf(&b, "%d. %s %s %x\n", at+1, w.unknown, Brief(d.Hash, shownLength), []byte(d.Digest))
				continue
			}
			fmt.Fprintf(&b, "%d. %s (%d %s)\n", at+1, Brief(d.Name, shownLength), d.Size, w.bytes)
		}
	}
	if number := CheckNumber(f.Action, sum); number != "" {
		line(w.group, number)
	}
	return b.String()
}

// maxShort is the largest text of Short in bytes, besides its first two lines.
const maxShort = 480

// Short returns a text for the user in a picture of little room: action, check number,
// number of documents, the first name, and the arguments that fit. The fields must be valid.
func (f *Fields) Short(lang string) (string, error) {
	sum, err := f.Sum()
	if err != nil {
		return "", err
	}
	const length = 60
	w := wordsOf(lang)
	text := ActionName(f.Action, lang)
	if number := CheckNumber(f.Action, sum); number != "" {
		text += "\n" + w.group + ": " + number
	}
	most := len(text) + maxShort
	line := func(name, value string) {
		if one := "\n" + name + ": " + value; len(text)+len(one) <= most {
			text += one
		}
	}
	if n := len(f.Documents); n > 0 {
		line(w.documents, fmt.Sprintf("%d, %s", n, Brief(f.FirstName(lang), length)))
	}
	for _, v := range f.Arguments.list {
		if v.Digest == nil {
			line(Brief(v.Name, length), Brief(v.Value, length))
		}
	}
	return text, nil
}

// FirstName returns the name of the first document for a short message in a language. It
// is empty without documents.
func (f *Fields) FirstName(lang string) string {
	if len(f.Documents) == 0 {
		return ""
	}
	d := f.Documents[0]
	if d.Hash != "" {
		w := wordsOf(lang)
		return fmt.Sprintf("%s %x", w.unknown, []byte(d.Digest[:min(4, len(d.Digest))]))
	}
	return d.Name
}

// Brief returns a name as one line of at most most characters.
func Brief(s string, most int) string {
	runes := []rune(notify.OneLine(s))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
