// SPDX-License-Identifier: Apache-2.0

package xmldsig

// Namespaces.
const (
	nsDS     = "http://www.w3.org/2000/09/xmldsig#"
	nsXAdES  = "http://uri.etsi.org/01903/v1.3.2#"
	nsLater  = "http://uri.etsi.org/01903/v1.4.1#" // of the properties that EN 319 132-1 added
	nsEC     = "http://www.w3.org/2001/10/xml-exc-c14n#"
	nsFilter = "http://www.w3.org/2002/06/xmldsig-filter2"
	nsWSSE   = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
)

// Values of the Type attribute of a Reference.
const (
	typeObject     = nsDS + "Object"
	typeProperties = "http://uri.etsi.org/01903#SignedProperties"
)

// encodingBase64 is the Encoding of an Object that contains Base64.
const encodingBase64 = nsDS + "base64"

// Identifiers of transforms.
const (
	algEnveloped = nsDS + "enveloped-signature"
	algBase64    = nsDS + "base64"
	algXPath     = "http://www.w3.org/TR/1999/REC-xpath-19991116"
	algFilter2   = nsFilter
	algSMEV      = "urn://smev-gov-ru/xmldsig/transform"
	algExcC14N   = "http://www.w3.org/2001/10/xml-exc-c14n#"
	algXSLT      = "http://www.w3.org/TR/1999/REC-xslt-19991116"
)
