// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"cmp"
	"context"
	"strings"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// Template is a processing template: named parameters of a signature.
type Template struct {
	ID          string `json:"Id"`
	Description string
}

// signingPolicy is the policy of the signing service.
type signingPolicy struct {
	CAPolicy                []authorityPolicy
	CSPsPolicy              []providerPolicy
	ActionPolicy            []actionPolicy
	PinCodeMode             string
	TspServices             []wireTSP
	TransactionConfirmation string
	AllowedSignatureTypes   []string
	AllowThirdPartyTsp      bool
	AllowHashSigning        bool
	Templates               []Template `json:"templates"`
}

type authorityPolicy struct {
	ID              int64
	Name            string
	Active          bool
	AllowUserMode   bool
	SNChangesEnable bool
	CAType          string
	ValidationMode  string
	NamePolicy      []namePolicy
	EKUTemplates    map[string][]string
	ShowInUI        bool
}

type namePolicy struct {
	IsRequired       bool
	Order            int
	OID              string
	Name             string
	Value            string
	StringIdentifier string
}

type providerPolicy struct {
	ID             string
	GroupID        string
	TypeID         string
	ProviderName   string
	ProviderType   int
	KeyLength      int
	HashAlgorithms []string
	Description    string
}

type actionPolicy struct {
	DisplayName string
	URI         string `json:"Uri"`
	Action      string
	MfaRequired bool
}

// wireTSP is a time-stamp service on the wire.
type wireTSP struct {
	Name  string
	Title string
	URL   string `json:"Url"`
}

const (
	// actionURI is the beginning of the address of an action, which ends in its name in
	// lower case.
	actionURI = "http://dss.cryptopro.ru/identity/claims/action/"
	// caAutomatic marks authorities that issue by themselves. caByHand marks authorities
	// whose certificates are imported.
	caAutomatic = "CryptoProCA20Enroll"
	caByHand    = "DSSOutOfBandEnroll"
	// usagesName is the title of the key usages of a certificate if nothing else is
	// requested.
	usagesName = "Подпись документов"
	// providerKind names the holder of the keys: this program.
	providerKind = "9a4d1a52-5f0b-4e5d-8f0a-2b6a4c1f7e01"
)

func (m *Management) policy(ctx context.Context, r struct {
	Languages string `header:"Accept-Language"`
}) (signingPolicy, error) {
	lang := rest.LanguageFor(m.Language, r.Languages)
	services, err := m.Policy.TSPServices(ctx)
	if err != nil {
		return signingPolicy{}, err
	}
	who := rest.Caller(ctx)
	names, err := m.names(ctx, who.UserID, lang)
	if err != nil {
		return signingPolicy{}, err
	}
	p := signingPolicy{
		CAPolicy: []authorityPolicy{}, CSPsPolicy: []providerPolicy{}, ActionPolicy: []actionPolicy{}, TspServices: []wireTSP{},
		PinCodeMode: string(m.Keys.PINMode), TransactionConfirmation: "Off",
		AllowedSignatureTypes: m.Policy.Rules.AllowedSignatureTypes,
		AllowThirdPartyTsp:    m.Policy.Rules.AllowThirdPartyTSP, AllowHashSigning: m.Policy.Rules.AllowHashSigning,
		Templates: m.Templates,
	}
	if p.Templates == nil {
		p.Templates = []Template{}
	}
	var usages []string
	for _, u := range keys.DefaultUsages() {
		usages = append(usages, u.String())
	}
	for _, a := range m.Keys.Enrolment.Authorities {
		kind := caAutomatic
		if a.Outside {
			kind = caByHand
		}
		p.CAPolicy = append(p.CAPolicy, authorityPolicy{
			ID: a.ID, Name: a.Name, Active: true, AllowUserMode: true, SNChangesEnable: !m.Keys.Enrolment.FixedNames,
			CAType: kind, ValidationMode: "CertificateAuthority", NamePolicy: names,
			EKUTemplates: map[string][]string{usagesName: usages}, ShowInUI: true,
		})
	}
	for _, known := range providers {
		p.CSPsPolicy = append(p.CSPsPolicy, providerPolicy{
			ID: known.group, GroupID: known.group, TypeID: providerKind, ProviderName: known.name, ProviderType: known.kind,
			KeyLength: known.keyLength, HashAlgorithms: []string{known.hash}, Description: known.description,
		})
	}
	for _, action := range policy.Actions() {
		mfa := false
		if m.Keys.Confirmation != nil {
			if mfa, err = m.Keys.Confirmation.NeedsConfirmation(ctx, who.UserID, action); err != nil {
				return signingPolicy{}, err
			}
		}
		if mfa && transacts(action) {
			p.TransactionConfirmation = "On"
		}
		p.ActionPolicy = append(p.ActionPolicy, actionPolicy{
			DisplayName: what.ActionName(action.String(), lang), URI: actionURI + strings.ToLower(action.String()), Action: action.String(), MfaRequired: mfa,
		})
	}
	for _, t := range services {
		p.TspServices = append(p.TspServices, wireTSP{t.Name, cmp.Or(t.Title, t.Name), t.URL})
	}
	return p, nil
}

// transacts reports whether operations and transactions have an action. The others are
// confirmed at sign-in or not at all.
func transacts(a policy.Action) bool {
	for _, t := range transactions {
		if t.action == a {
			return t.signs() || t.read != nil
		}
	}
	return false
}

// names returns the components of a distinguished name, with the values known for the user and
// their titles in the language lang.
func (m *Management) names(ctx context.Context, userID, lang string) ([]namePolicy, error) {
	profile := map[string]string{}
	if m.Keys.Profiles != nil {
		var err error
		if profile, err = m.Keys.Profiles.ProfileOf(ctx, userID); err != nil {
			return nil, err
		}
	}
	list := []namePolicy{}
	for _, c := range m.Keys.Enrolment.Naming {
		list = append(list, namePolicy{
			IsRequired: c.Required, Order: c.Order, OID: c.OID, Name: c.NameIn(lang),
			Value: cmp.Or(profile[c.OID], c.Default), StringIdentifier: c.Name,
		})
	}
	return list, nil
}
