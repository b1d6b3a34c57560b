// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
)

// Metadata implements signin.PostingProvider. It returns an EntityDescriptor of a service
// provider (metadata, 2.4.4). It publishes no encryption key, so providers send
// assertions unencrypted.
func (p *SAML) Metadata() ([]byte, error) {
	signed, key, format := "false", "", ""
	if p.o.Key != nil {
		signed = "true"
		key = `<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="` + nsDS + `"><ds:X509Data><ds:X509Certificate>` +
			base64.StdEncoding.EncodeToString(p.o.Certificate) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
	}
	if p.o.NameIDFormat != "" {
		format = `<md:NameIDFormat>` + escape(p.o.NameIDFormat) + `</md:NameIDFormat>`
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<md:EntityDescriptor xmlns:md="` + nsMetadata + `" entityID="` + escape(p.o.EntityID) + `">` +
		`<md:SPSSODescriptor AuthnRequestsSigned="` + signed + `" WantAssertionsSigned="true" protocolSupportEnumeration="` + nsProtocol + `">` + key + format +
		`<md:AssertionConsumerService Binding="` + bindingPost + `" Location="` + escape(p.o.ReturnURL) + `" index="0" isDefault="true"/>` +
		`</md:SPSSODescriptor></md:EntityDescriptor>` + "\n"), nil
}

// MaxMetadata is the size of the largest metadata file, in bytes. Files of federations are large.
const MaxMetadata = 64 << 20

var metadataLimits = xmltree.Options{Size: MaxMetadata, Depth: 64}

// ReadSAMLMetadata reads the metadata of a provider: the EntityDescriptor with entityID,
// or the only one of the document if entityID is empty. A signature of the document is
// not checked: the document is part of the configuration and trusted as such.
func ReadSAMLMetadata(document []byte, entityID string) (SAMLProvider, error) {
	t, err := xmltree.Parse(document, metadataLimits)
	if err != nil {
		return SAMLProvider{}, fmt.Errorf("idp: metadata: %w", err)
	}
	p, err := readEntity(t, entityID)
	if err != nil {
		return SAMLProvider{}, fmt.Errorf("idp: metadata: %w", err)
	}
	return p, nil
}

func readEntity(t *xmltree.Tree, entityID string) (p SAMLProvider, err error) {
	entity := xmltree.None
	for n := range t.Find(t.Root(), nsMetadata, "EntityDescriptor") {
		id, _ := t.Get(n, "entityID")
		switch {
		case entityID != "" && id != entityID:
			continue
		case entity != xmltree.None:
			return p, errors.New("there is more than one EntityDescriptor: set entity_id to choose one")
		}
		entity, p.EntityID = n, id
	}
	if entity == xmltree.None {
		return p, errors.New("there is no EntityDescriptor with this entity_id")
	}
	role := xmltree.None
	for n := range t.Elements(entity) {
		protocols, _ := t.Get(n, "protocolSupportEnumeration")
		if t.Is(n, nsMetadata, "IDPSSODescriptor") && slices.Contains(strings.Fields(protocols), nsProtocol) {
			role = n
			break
		}
	}
	if role == xmltree.None {
		return p, errors.New("the entity has no IDPSSODescriptor of SAML 2.0")
	}
	// validUntil of an element also limits the elements inside it.
	for n := role; n != xmltree.Document; n = t.Parent(n) {
		text, has := t.Get(n, "validUntil")
		if !has {
			continue
		}
		until, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return p, errors.New("validUntil is not a valid time")
		}
		if p.ValidUntil.IsZero() || until.Before(p.ValidUntil) {
			p.ValidUntil = until
		}
	}
	wants, _ := t.Get(role, "WantAuthnRequestsSigned")
	p.WantsSigned = wants == "true" || wants == "1"
	for n := range t.Elements(role) {
		switch {
		case t.Is(n, nsMetadata, "SingleSignOnService"):
			if binding, _ := t.Get(n, "Binding"); binding == bindingRedirect && p.SSO == "" {
				p.SSO, _ = t.Get(n, "Location")
			}
		case t.Is(n, nsMetadata, "KeyDescriptor"):
			if use, has := t.Get(n, "use"); has && use != "signing" {
				continue
			}
			for c := range t.Find(n, nsDS, "X509Certificate") {
				der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(t.StringValue(c)), ""))
				if err != nil {
					return p, errors.New("an X509Certificate is not Base64")
				}
				certificate, err := x509gost.ParseCertificate(der)
				if err != nil {
					return p, err
				}
				p.Certificates = append(p.Certificates, certificate)
			}
		}
	}
	if p.SSO == "" {
		return p, errors.New("the provider has no SingleSignOnService by HTTP-Redirect")
	}
	return p, nil
}
