// SPDX-License-Identifier: Apache-2.0

package ooxml

import "strings"

// duty is what a signature must sign of a relationship and its part.
type duty int

const (
	// unknownKind: no known specification of Office defines it. We sign it. A signature
	// without it is indeterminate, because it may have been added later.
	unknownKind duty = iota
	// signedByUs: Office defines it, but is not known to sign it. We sign it. A signature
	// without it is valid, with a finding.
	signedByUs
	// signedByOffice: Office signs it. If it is not signed, Office says that something
	// was added to the document.
	signedByOffice
	// relationshipOnly: Office signs the relationship but not the part, which other
	// programs may fill in without its knowledge.
	relationshipOnly
	// neverSigned: it changes without a change of the document, or it belongs to the
	// signatures.
	neverSigned
)

const relationshipsBase = "http://schemas.openxmlformats.org/package/2006/relationships/"

// Relationship types of signatures (ECMA-376 part 2, annex E).
const (
	relOrigin    = relationshipsBase + "digital-signature/origin"
	relSignature = relationshipsBase + "digital-signature/signature"
)

// kindOf returns the common end of a relationship type, which is the same in the
// transitional and the strict form and in Microsoft's extensions of any year.
func kindOf(relationshipType string) string {
	const mark = "/relationships/"
	if i := strings.LastIndex(relationshipType, mark); i >= 0 {
		return relationshipType[i+len(mark):]
	}
	return relationshipType
}

// dutyOf returns the duty for a relationship type.
func dutyOf(relationshipType string) duty {
	kind := kindOf(relationshipType)
	if d, ok := duties[kind]; ok {
		return d
	}
	if strings.HasPrefix(kind, "ui/") { // of a ribbon: ui/extensibility and the like
		return signedByOffice
	}
	return unknownKind
}

// isMain reports whether a relationship of the package leads to the document itself.
func isMain(relationshipType string) bool { return kindOf(relationshipType) == "officeDocument" }

// duties has the duty for the last steps of a relationship type, as ECMA-376 parts 1 and
// 4, MS-DOCX, MS-XLSX, MS-XLSB, MS-PPTX and MS-OI29500 name them.
var duties = func() map[string]duty {
	m := map[string]duty{
		"customXml": relationshipOnly,

		"metadata/core-properties":      neverSigned,
		"metadata/thumbnail":            neverSigned,
		"extended-properties":           neverSigned,
		"extendedProperties":            neverSigned, // strict
		"custom-properties":             neverSigned,
		"customProperties":              neverSigned, // strict
		"customXmlProps":                neverSigned,
		"digital-signature/origin":      neverSigned,
		"digital-signature/signature":   neverSigned,
		"digital-signature/certificate": neverSigned,
	}
	for _, kind := range strings.Fields(later) {
		m[kind] = signedByUs
	}
	for _, kind := range strings.Fields(office) {
		m[kind] = signedByOffice
	}
	return m
}()

// later lists the types that ECMA-376, MS-DOCX, MS-XLSX and MS-PPTX define and that are
// missing in the list of types that Office signs, mostly because they are newer.
const later = `
	frame subDocument commentsExtended commentsIds commentsExtensible people
	documentTasks documenttasks webextension webextensiontaskpanes chartEx model3d
	intelligence intelligence2
	vbaProjectSignature vbaProjectSignatureAgile vbaProjectSignatureV3

	revisionHeaders revisionLog usernames person threadedComment namedSheetView
	rdArray rdRichValue rdRichValueStructure rdRichValueTypes rdRichValueWebImage
	richValueRel richStyles rdSupportingPropertyBag rdSupportingPropertyBagStructure
	FeaturePropertyBag externalLinkLongPath customDataProps survey

	presProps viewProps htmlPubSaveAs revisionInfo changesInfo authors slideSyncServer
`

// office lists the types that all versions of Office sign. Only Office 2007 left out
// presProps and viewProps, the window and the printer of a presentation.
const office = `
	officeDocument package glossaryDocument attachedTemplate attachedToolbars
	documentParts settings webSettings styles stylesWithEffects numbering fontTable font
	header footer footnotes endnotes comments aFChunk keyMapCustomizations
	recipientData mailMergeSource mailMergeHeaderSource mailMergeRecipientData
	wordVbaData userXmlData smartTags dictionary downRev transform

	worksheet chartsheet dialogsheet xlMacrosheet xlIntlMacrosheet xlBinaryIndex
	sharedStrings calcChain connections queryTable table tableSingleCells
	pivotTable pivotCacheDefinition pivotCacheRecords powerPivotData
	externalLink externalLinkPath xlExternalLinkPath/xlAlternateStartup
	xlExternalLinkPath/xlLibrary xlExternalLinkPath/xlPathMissing xlExternalLinkPath/xlStartup
	sheetMetadata volatileDependencies xmlMaps wsSortMap customProperty customData
	ctrlProp printerSettings slicer slicerCache timeline timelineCache functionPrototypes

	slide slideLayout slideMaster notesSlide notesMaster handoutMaster
	slideUpdateInfo slideUpdateUrl tableStyles tags commentAuthors
	legacyDiagramText legacyDocTextInfo

	theme themeOverride drawing vmlDrawing chart chartLayout chartStyle chartColorStyle
	chartUserShapes diagram diagramData diagramLayout diagramLayoutHeader
	diagramColors diagramColorsHeader diagramQuickStyle diagramQuickStyleHeader
	diagramDrawing graphicFrameDoc groupShapeXml shapeXml pictureXml connectorXml
	image hdphoto ink inkXml audio video media
	oleObject control activeXControlBinary vbaProject hyperlink classificationlabels
`

// signsAnyway reports whether a custom XML part is signed although its kind is not: ink,
// which is drawn, and plain text/xml.
func signsAnyway(contentType string) bool {
	return contentType == "text/xml" || strings.HasSuffix(contentType, "inkml+xml")
}
