// SPDX-License-Identifier: Apache-2.0

// Adds a revision to the file that is the first argument, in place. The second is the edit, fill or content, the third
// the value.
var doc = new PDFDocument(scriptArgs[0]);
if (scriptArgs[1] === "fill") {
	var page = doc.loadPage(0);
	page.getWidgets().forEach(function (w) {
		if (w.getFieldType() === "text") {
			w.setTextValue(scriptArgs[2]);
			w.update();
		}
	});
	page.update();
} else {
	doc.findPage(0).put("Contents", doc.addStream("72 600 200 50 re f", null));
}
if (!doc.canBeSavedIncrementally())
	throw new Error("not to be saved incrementally");
doc.save(scriptArgs[0], "incremental");
