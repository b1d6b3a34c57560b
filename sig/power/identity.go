// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"strings"

	"tamga/pki/x509gost"
)

// identity is what a certificate says of its subject, in digits.
type identity struct {
	inn, snils    string // of a person
	innle, ogrn   string // of an organization
	ogrnip        string // of a trader
	surname, name string
}

func identityOf(c *x509gost.Certificate) (id identity) {
	if c == nil {
		return id
	}
	of := func(oid x509gost.OID) string {
		value, _ := c.Subject.Get(oid)
		return value
	}
	id = identity{
		inn: digits(of(x509gost.OIDINN)), snils: digits(of(x509gost.OIDSNILS)), innle: digits(of(x509gost.OIDINNLE)), ogrn: digits(of(x509gost.OIDOGRN)), ogrnip: digits(of(x509gost.OIDOGRNIP)),
		surname: of(x509gost.OIDSurname), name: of(x509gost.OIDGivenName),
	}
	// Certificates before INNLE have the number of an organization here, after two zeros.
	if organization, long := strings.CutPrefix(id.inn, "00"); len(id.inn) == 10 || long && len(id.inn) == 12 {
		if id.innle == "" {
			id.innle = organization
		}
		id.inn = ""
	}
	return id
}

// actsItself reports whether the certificate is of an organization or a trader, and so of a person who needs no power.
func (id *identity) actsItself() bool { return id.innle != "" || id.ogrn != "" || id.ogrnip != "" }

// likeness is the result of comparing a party with a certificate, from none to all.
type likeness int

const (
	unlike  likeness = iota // all identifiers that both have differ
	unknown                 // they have no identifier of one kind
	partly                  // some are equal and some differ
	same                    // all are equal
)

// pair is an identifier of a party, and the one of a certificate.
type pair struct{ name, theirs, given string }

// pairs returns the identifiers to compare.
func (p *Party) pairs(id *identity) [3]pair {
	if p.Organization {
		return [3]pair{{"INN", p.INN, id.innle}, {"OGRN", p.OGRN, id.ogrn}}
	}
	return [3]pair{{"INN", p.INN, id.inn}, {"SNILS", p.SNILS, id.snils}, {"OGRNIP", p.OGRN, id.ogrnip}}
}

// like compares a party with a certificate by the identifiers that both have.
func (p *Party) like(id *identity) likeness {
	equal, different := 0, 0
	for _, one := range p.pairs(id) {
		switch {
		case one.theirs == "" || one.given == "":
		case one.theirs == one.given:
			equal++
		default:
			different++
		}
	}
	switch {
	case equal > 0 && different == 0:
		return same
	case equal > 0:
		return partly
	case different > 0:
		return unlike
	}
	return unknown
}

// differences says which identifiers differ.
func (p *Party) differences(id *identity) (list []string) {
	for _, one := range p.pairs(id) {
		if one.theirs != "" && one.given != "" && one.theirs != one.given {
			list = append(list, fmt.Sprintf("its %s is %s, the certificate has %s", one.name, one.theirs, one.given))
		}
	}
	return list
}

// String returns the name of a party with an identifier.
func (p *Party) String() string {
	id := "without INN and SNILS"
	switch {
	case p.INN != "":
		id = "INN " + p.INN
	case p.SNILS != "":
		id = "SNILS " + p.SNILS
	case p.OGRN != "":
		id = "OGRN " + p.OGRN
	}
	if p.Name == "" {
		return id
	}
	return p.Name + " (" + id + ")"
}

// signs reports whether the holder of a certificate may sign a power for a principal: the person itself, or one of the
// people who act for an organization, with a certificate of an organization. person is who of Acting it is, -1 for none.
func (p *Party) signs(id *identity) (ok bool, person int) {
	if l := p.like(id); !p.Organization {
		return l == same, -1
	} else if l != same {
		managed := false // by another organization, whose certificate it is
		for i := range p.Acting {
			l := p.Acting[i].like(id)
			managed = managed || p.Acting[i].Organization && l == same
		}
		if !managed {
			return false, -1
		}
	}
	people := 0
	for i := range p.Acting {
		if p.Acting[i].Organization {
			continue
		}
		people++
		if p.Acting[i].like(id) == same {
			return true, i
		}
	}
	return people == 0, -1
}

// represents reports how far a party of a power is the holder of a certificate. For an organization with people it is one of
// these people, too. who is the party itself or one of them.
func (p *Party) represents(id *identity) (l likeness, who *Party) {
	l, who = p.like(id), p
	for i := range p.Acting {
		if other := p.Acting[i].like(id); other > l {
			l, who = other, &p.Acting[i]
		}
	}
	return l, who
}

// isParty reports whether two descriptions in different powers are of the same party.
func (p *Party) isParty(q *Party) bool {
	if p.Organization != q.Organization {
		return false
	}
	compared := false
	for _, pair := range [][2]string{{p.INN, q.INN}, {p.OGRN, q.OGRN}, {p.SNILS, q.SNILS}} {
		if pair[0] == "" || pair[1] == "" {
			continue
		}
		if pair[0] != pair[1] {
			return false
		}
		compared = true
	}
	return compared
}

// isNotary reports whether a certificate is of a person with this name. That this person is a notary it does not say.
func (n *Name) isNotary(id *identity) bool {
	return id.surname != "" && folded(n.Surname) == folded(id.surname) && folded(n.Given) == folded(id.name)
}

// folded makes names comparable: case, white space, and the letter that is often written without its dots.
func folded(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(strings.ToLower(s)), " "), "ё", "е")
}
