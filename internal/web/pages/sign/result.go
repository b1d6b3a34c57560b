// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// report is what a verification found in a file. Its exported fields are what a page carries to the form of reports.
type report struct {
	Name     string // of the file
	Document string // name of the document of a detached signature; "": it is in the file, or missing
	At       int    // place of the file in the upload
	Size     int64
	Digest   string // of the document, Streebog-256
	When     time.Time
	Verdict  string // the worst of all signatures: passed, indeterminate or failed
	// Problem is the row of a file that could not be verified, "" for others. Detail is the message of the fault.
	Problem, Detail string
	Signatures      []signature
	Contained       []containedFile // files of a container, which can be taken out
	// Of a stored report: its number, when it was stored and when it ends.
	Number        string
	Stored, Until time.Time

	found    []signing.SignatureReport
	carry    string         // the signature as Base64, if its document is missing
	document int            // place of Document in the upload, -1 without one
	powers   []signing.File // powers of attorney by which it was verified
	here     bool           // its files are in the form of the page, which sends them again
	stored   string         // identifier of the stored result that was verified, "" for an upload
	kind     string         // type of signature, as of sent
}

// containedFile is a file of a container.
type containedFile struct {
	At   int // place in the container
	Name string
	Size int64
	// Covered reports that a signature which holds covers it. A container may have others.
	Covered bool
}

// signature is one signature of a file.
type signature struct {
	signing.SignatureReport
	Number string // "1", and "1.2" for a countersignature
}

// of returns the place of the document that was signed.
func (r *report) of() int {
	if r.document >= 0 {
		return r.document
	}
	return r.At
}

// needsDocument reports whether the document of a detached signature is missing.
func (r *report) needsDocument() bool {
	return slices.ContainsFunc(r.Signatures, func(s signature) bool {
		return slices.ContainsFunc(s.Findings, func(f signing.Finding) bool { return f.Code == "document-missing" })
	})
}

// Revision returns the length of the signed version of a document that was changed later, 0 for others.
func (r *report) Revision() (size int64) {
	for _, s := range r.Signatures {
		if f := decider(&s.SignatureReport); f != nil && s.Revision < r.Size && rowsOf[f.Code] == rowsOf["later-change"] {
			size = max(size, s.Revision)
		}
	}
	return size
}

// verifyView is the form, and above it what was found.
type verifyView struct {
	MaxBytes view.Bytes

	PDFScript, PDFWorker string

	Results  []result // nothing was verified yet without them
	Title    string   // of several files
	When     time.Time
	Counts   []countOf // of the files of each verdict
	Sealed   string    // reports for the form that prints them; "" if there are too many
	Password bool      // a file needs its password
	Keeps    bool      // the reader may store reports under a number
}

// One returns the result if there is one only.
func (v verifyView) One() *result {
	if len(v.Results) == 1 {
		return &v.Results[0]
	}
	return nil
}

// countOf is the number of files with a verdict.
type countOf struct {
	Verdict string
	First   int // place of the first result
	N       int
}

// result is a report in words.
type result struct {
	*report
	Place    int    // in the list, from 0
	Several  bool   // it is one of several
	Keeps    bool   // the reader may store the report under a number
	Here     bool   // the form of the page has its files
	Card     bool   // a card can be made of the document, of Here or of Ref
	Ref      string // identifier of the stored result
	Raise    bool   // the signatures can be raised to a higher level
	Headline string // the word of the verdict and the cause
	Sentence string
	Mend     string
	Cause    string // in a list; "": the verdict says all
	Signers  string // in a list
	Signed   time.Time
	Tag      string
	Seal     string // verdict of the seal

	Carry    string // the signature that waits for its document
	Probably string // name of that document
	Parts    []signatureResult
}

// Tone returns the kind of the tag in a list.
func (r *result) Tone() string {
	return map[string]string{passed: "good", failed: "bad", indeterminate: "warn"}[r.Verdict]
}

// Icon returns the icon of the tag in a list.
func (r *result) Icon() string {
	return map[string]string{passed: "check", failed: "close", indeterminate: "question"}[r.Verdict]
}

// signatureResult is a signature in words.
type signatureResult struct {
	*signature
	said
	Place     string // for identifiers on the page
	Headline  string
	Kind      string
	Moments   []moment
	Chain     []link
	Known     []string // what is established, if the verdict is not passed
	Open      []string // what is not
	Remarks   []string
	Qualified []string      // what the list of accredited authorities says, the verdict first
	Power     []string      // the power of attorney by which the signer acts, if one was given
	Specifics []view.Option // label and value, for specialists
	Exact     []exact
}

// exact is a finding for specialists.
type exact struct{ Code, Text, Detail string }

// moment is an entry of the time line. Kind is good, bad, warn or "".
type moment struct{ Kind, Icon, Title, Time, Hint string }

// link is a certificate of the path of trust.
type link struct{ Kind, Icon, Name, Hint string }

// results returns reports in words.
func (a *API) results(w *view.Words, list []*report, keeps bool) (v verifyView, err error) {
	v.Keeps = keeps
	wrong := map[int]bool{} // documents that have a signature that does not hold: no card is made of them
	for _, r := range list {
		wrong[r.of()] = wrong[r.of()] || r.Verdict == failed
	}
	for i, r := range list {
		one := a.inWords(w, r)
		one.Place, one.Several, one.Keeps = i, len(list) > 1, keeps && r.Digest != ""
		one.Here, one.Ref = r.here, r.stored
		one.Card = a.Cards != nil && (r.here || r.stored != "") && !wrong[r.of()] && len(r.Signatures) > 0 && !r.needsDocument()
		v.Results = append(v.Results, one)
		v.When, v.Password = r.When, v.Password || r.Problem == "password"
		if n := len(v.Counts); n > 0 && v.Counts[n-1].Verdict == r.Verdict {
			v.Counts[n-1].N++
		} else {
			v.Counts = append(v.Counts, countOf{r.Verdict, i, 1})
		}
	}
	if len(list) > 1 {
		v.Title = w.Count("verify.many", len(list))
		bad := 0
		for _, c := range v.Counts {
			if c.Verdict != passed {
				bad += c.N
			}
		}
		if bad > 0 {
			v.Title += ": " + w.Count("verify.troubles", bad)
		} else {
			v.Title += ": " + w.Text("verify.no_troubles")
		}
	}
	v.Sealed, err = a.sealReports(list)
	return v, err
}

// inWords returns a report in words.
func (a *API) inWords(w *view.Words, r *report) result {
	out := result{report: r, Carry: r.carry, Seal: r.Verdict, Probably: view.Visible(stemOf(r.Name))}
	speak := speaker{w, a.Asks, r.Document != ""}
	if r.Problem != "" {
		say := speak.say(r.Problem, &signing.SignatureReport{}, &signing.Finding{})
		out.Headline, out.Sentence, out.Mend = say.Head, say.Text, say.Mend
		// Their headlines say what is the case, without a verdict.
		own := r.Problem == "none" || r.Problem == "empty" || r.Problem == "gone"
		if !own {
			out.Headline = w.Text("verdict."+r.Verdict) + ": " + say.Head
		}
		out.Tag, out.Cause = w.Text("verdict."+r.Verdict), say.Head
		if own {
			out.Tag, out.Cause = say.Head, say.Mend
		}
		return out
	}
	whole := 0
	for i := range r.Signatures {
		s := &r.Signatures[i]
		part := speak.signature(s)
		if strings.Contains(s.Number, ".") {
			part.Place = strings.ReplaceAll(s.Number, ".", "-")
		} else {
			part.Place, whole = s.Number, whole+1
			if s.Signer != nil {
				if out.Signers != "" {
					out.Signers += ", "
				}
				out.Signers += view.NameIn(s.Signer.Subject)
			}
			if t := timeOf(s); t.After(out.Signed) {
				out.Signed = t
			}
		}
		if s.Verdict == r.Verdict && out.Headline == "" {
			out.Headline, out.Sentence, out.Mend = part.Headline, part.Text, part.Mend
			out.Cause = part.Head
		}
		out.Parts = append(out.Parts, part)
	}
	out.Tag = w.Text("verdict." + r.Verdict)
	if whole > 1 && r.Verdict == passed {
		out.Tag = w.Text("verify.all_valid", whole, whole)
		out.Sentence = out.Tag + ". " + out.Sentence
	}
	if r.Document != "" && r.Verdict == passed {
		out.Sentence += " " + w.Text("verify.with", view.Visible(r.Document))
	}
	return out
}

// timeOf returns the time of a signature: that which its signer claims, or else that of its time stamp.
func timeOf(s *signature) time.Time {
	if s.ClaimedTime.IsZero() {
		return s.StampedTime
	}
	return s.ClaimedTime
}

// signature returns a signature in words.
func (w speaker) signature(s *signature) signatureResult {
	out := signatureResult{signature: s, Headline: w.Text("verdict." + s.Verdict)}
	f := decider(&s.SignatureReport)
	switch {
	case s.Verdict == passed:
		out.Text, out.Mend = w.valid(s)
	case f == nil:
		out.said = w.say("countersigned", &s.SignatureReport, &signing.Finding{})
	default:
		out.said = w.say(w.rowOf(&s.SignatureReport, f), &s.SignatureReport, f)
	}
	if out.Head != "" {
		out.Headline += ": " + out.Head
	}
	for i := range s.Findings {
		one := &s.Findings[i]
		text := w.TextOr("code."+one.Code, "")
		if one.Verdict == passed && !allowed[one.Code] && text != "" {
			out.Remarks = append(out.Remarks, text)
		}
		out.Exact = append(out.Exact, exact{one.Code, text, one.Text})
	}
	out.Kind, out.Qualified, out.Power = w.kind(s), w.quality(s.Quality), w.power(s.Mandate)
	out.Moments = w.moments(s, out.Row)
	out.Chain = w.chain(s, out.Row)
	out.Known, out.Open = w.established(s)
	return out
}

// valid says that a signature is valid, and what can be done about its time.
func (w speaker) valid(s *signature) (text, mend string) {
	var parts []string
	switch t := timeOf(s); {
	case t.IsZero():
	case s.StampedTime.IsZero():
		parts = append(parts, w.Text("verify.signed_claimed", w.When(t)))
		mend = w.Text("verify.ask_stamp")
	default:
		parts = append(parts, w.Text("verify.signed_at", w.When(t)))
	}
	if s.Signer != nil {
		owner := view.NameIn(s.Signer.Subject)
		if of := view.RolesIn(s.Signer.Subject); of != "" {
			owner += ", " + of
		}
		parts = append(parts, w.Text("verify.owner", owner))
	}
	changed := false
	for i := range s.Findings {
		f := &s.Findings[i]
		switch row := w.rowOf(&s.SignatureReport, f); {
		case row == "later" || row == "revoked_later":
			parts = append(parts, w.say(row, &s.SignatureReport, f).Text)
			changed = changed || row == "later"
		case f.Code == "covers-part":
			parts = append(parts, w.Text("code.covers-part")+".")
			changed = true
		}
	}
	if !changed {
		parts = append(parts, w.Text("verify.unchanged"))
	}
	return strings.Join(parts, " "), mend
}

// kind says what kind of signature it is. Whether it is qualified is not known here.
func (w speaker) kind(s *signature) string {
	level := map[string]string{"T": "stamped", "C": "stamped", "X1": "stamped", "X-L": "long", "XLT1": "long", "LT": "long", "A": "archive", "LTA": "archive", "DocTimeStamp": "stamp"}[s.Level]
	if level == "" {
		level = "plain"
	}
	text := w.Text("verify.kind." + level)
	if s.Algorithm != "" {
		text += ", " + w.Algorithm(s.Algorithm)
	}
	return text
}

// quality returns what the list of accredited authorities says about a signature, nothing without a list.
func (w speaker) quality(q *signing.Quality) (lines []string) {
	if q == nil {
		return nil
	}
	lines = append(lines, w.Text("quality."+q.Code))
	if q.Authority != "" {
		authority := view.Visible(q.Authority)
		if q.INN != "" {
			authority += ", " + w.Text("quality.inn", view.Visible(q.INN))
		}
		if q.Number != "" {
			authority += ", " + w.Text("quality.number", view.Visible(q.Number))
		}
		lines = append(lines, w.Text("quality.authority", authority))
	}
	switch q.Basis {
	case signing.TimeProven:
		lines = append(lines, w.Text("quality.proven", w.When(q.At)))
	case signing.TimeClaimed:
		lines = append(lines, w.Text("quality.claimed", w.When(q.At)))
	default:
		lines = append(lines, w.Text("quality.unknown"))
	}
	list := w.Text("quality.list", w.Day(q.ListDate))
	if q.Old {
		list += "; " + w.Text("quality.old")
	}
	return append(lines, list)
}

// moments returns the time line of a signature.
func (w speaker) moments(s *signature, row string) (list []moment) {
	add := func(kind, icon, title string, t string, hint string) {
		list = append(list, moment{kind, icon, w.Text("moment." + title), t, hint})
	}
	if !s.ClaimedTime.IsZero() {
		add("good", "sign", "signed", w.When(s.ClaimedTime), w.Text("moment.signed_hint"))
	}
	switch {
	case s.StampedTime.IsZero():
		add("", "clock", "no_stamp", "", w.Text("moment.no_stamp_hint"))
	case s.StampedBy != nil:
		add("good", "clock", "stamp", w.When(s.StampedTime), w.Text("moment.stamp_hint", view.NameIn(s.StampedBy.Subject)))
	default:
		add("good", "clock", "stamp", w.When(s.StampedTime), "")
	}
	if c := s.Signer; c != nil {
		kind, title := "good", "valid"
		switch row {
		case "expired", "expired_later", "after_term":
			kind, title = "warn", "expired"
		case "not_yet":
			kind, title = "bad", "not_yet"
		}
		add(kind, "certificate", title, w.Text("moment.term", w.Day(c.NotBefore), w.Day(c.NotAfter)), "")
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		switch {
		case f.Code == "certificate-revoked":
			add("bad", "ban", "revoked", w.When(f.When), "")
		case f.Code == "certificate-revoked-later":
			add("", "ban", "revoked", w.When(f.When), w.Text("moment.revoked_later"))
		case f.Code == "certificate-revocation-unknown" && f.Verdict != passed:
			add("warn", "question", "unknown", "", "")
		}
	}
	if row == "changed" {
		add("bad", "warning", "changed", "", w.Text("moment.changed_hint"))
	}
	return list
}

// chain returns who vouches for the signer. Without a chain, row says whether the issuer was looked for.
func (w speaker) chain(s *signature, row string) (list []link) {
	c := s.Signer
	if c == nil {
		return nil
	}
	kind := ""
	if len(s.Path) > 0 {
		kind = "good"
	}
	hint := w.Text("verify.chain.owner")
	if of := view.RolesIn(c.Subject); of != "" {
		hint += ". " + of
	}
	list = append(list, link{kind, "user", view.NameIn(c.Subject), hint})
	if len(s.Path) == 0 && row == "unknown_authority" {
		return append(list, link{"warn", "question", view.NameIn(c.Issuer), w.Text("verify.chain.unknown")})
	}
	if len(s.Path) == 0 {
		return append(list, link{"", "authority", view.NameIn(c.Issuer), w.Text("verify.chain.claimed")})
	}
	for i, above := range s.Path[1:] {
		one := link{kind, "authority", view.NameIn(above.Subject), w.Text("verify.chain.authority", w.Day(s.Path[i].NotBefore))}
		if i == len(s.Path)-2 {
			one.Icon, one.Hint = "shield", w.Text("verify.chain.anchor")
		}
		list = append(list, one)
	}
	if len(s.Path) == 1 {
		list[0].Hint = w.Text("verify.chain.anchor")
	}
	return list
}

// established says what is established of a signature that did not pass, and what is not.
func (w speaker) established(s *signature) (known, open []string) {
	if s.Verdict != indeterminate {
		return nil, nil
	}
	bad := map[string]bool{}
	whole := s.Signer != nil
	for _, f := range s.Findings {
		if f.Verdict != passed {
			bad[f.Code] = true
			whole = whole && strings.HasPrefix(f.Code, "certificate-")
		}
	}
	say := func(is bool, key string) {
		if is {
			known = append(known, w.Text("verify.known."+key))
		} else {
			open = append(open, w.Text("verify.open."+key))
		}
	}
	say(whole, "unchanged")
	if s.Signer != nil {
		say(len(s.Path) > 0, "owner")
		if len(s.Path) > 0 {
			say(!bad["certificate-expired"] && !bad["certificate-not-yet-valid"], "term")
		}
		say(len(s.Path) > 0 && !bad["certificate-revocation-unknown"], "status")
	}
	return known, open
}
