// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// MostFound is the number of users that FindByWords finds at most.
const MostFound = 1000

// Limits of the texts that FindByWords compares.
const (
	maxTerms = 8   // of a search
	maxWord  = 64  // characters of a word that count
	maxWords = 256 // of what is stored together
	minTerm  = 2   // characters of the longest term of a search
)

// Term is a part of a search. A user has it if one of the user's words begins with one of these texts.
type Term []string

// Match is a page of what FindByWords found.
type Match struct {
	Users []Info
	IDs   []string // of all users that were found, also those on other pages
	More  bool     // more than MostFound users match, and IDs has some of them
	Next  string   // key to go on with, "" after the last user
}

// FindByWords returns at most limit users within the operator's reach who have all terms of a text, in the
// order of their keys, after the user with the key after. Terms are beginnings of words in any order:
// of names, logins, addresses and numbers; see [SearchWords]. The faults are access_denied,
// error_bad_bounds and error_invalid_filter_value.
func (s *Service) FindByWords(ctx context.Context, who audit.Principal, text, after string, limit int) (Match, error) {
	if limit < 1 || limit > MaxPage || len(after) > maxFilterValue || !utf8.ValidString(after) {
		return Match{}, fault.Newf(fault.BadBounds, "want a page of 1 to %d users", MaxPage)
	}
	terms, err := SearchTerms(text)
	if err != nil {
		return Match{}, err
	}
	if _, err := s.GroupsOf(ctx, who, 1); err != nil {
		return Match{}, err
	}
	found, err := s.SearchStore.FindUsers(ctx, who.UserID, terms, MostFound+1, s.now())
	if err == nil && len(found) == 0 {
		// Perhaps the numbers that follow each other are several.
		if apart, wrong := searchTerms(text, false); wrong == nil && len(apart) > len(terms) {
			found, err = s.SearchStore.FindUsers(ctx, who.UserID, apart, MostFound+1, s.now())
		}
	}
	if err != nil {
		return Match{}, err
	}
	m := Match{More: len(found) > MostFound}
	if m.More {
		found = found[:MostFound]
	}
	var page []string
	at := map[string]int{}
	for _, p := range found {
		m.IDs = append(m.IDs, p.ID)
		switch {
		case p.Key <= after && after != "":
		case len(page) < limit:
			at[p.ID], page, m.Next = len(page), append(page, p.ID), p.Key
		default:
			at[p.ID] = len(page) // more follow
		}
	}
	if len(at) == len(page) {
		m.Next = ""
	}
	if len(page) > 0 {
		m.Users, err = s.SearchStore.InfosByID(ctx, who.UserID, page, s.now())
		slices.SortFunc(m.Users, func(a, b Info) int { return at[a.ID] - at[b.ID] })
	}
	return m, err
}

// Named returns at most limit users of some groups, nil for all, whose login or display name has all terms of a
// text, in the order of their keys. Nothing else of a user is compared, so a search does not tell whose a number or an
// address is. The caller decides who may search in which groups. The fault is error_invalid_filter_value.
func (s *Service) Named(ctx context.Context, groups []string, text string, limit int) (list []User, more bool, err error) {
	terms, err := SearchTerms(text)
	if err != nil || groups != nil && len(groups) == 0 {
		return nil, false, err
	}
	list, err = s.SearchStore.NamedUsers(ctx, groups, terms, limit+1)
	if len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, err
}

// Place is where a user is in the order of keys.
type Place struct{ Key, ID string }

// SearchTerms returns the terms of a text that a person typed. The fault is
// error_invalid_filter_value.
func SearchTerms(text string) ([]Term, error) { return searchTerms(text, true) }

func searchTerms(text string, oneNumber bool) ([]Term, error) {
	if len(text) > maxFilterValue || !utf8.ValidString(text) {
		return nil, fault.Newf(fault.InvalidFilterValue, "search: want at most %d bytes of UTF-8", maxFilterValue)
	}
	var terms []Term
	longest := 0
	add := func(beginnings ...string) {
		if slices.ContainsFunc(terms, func(t Term) bool { return t[0] == beginnings[0] }) {
			return
		}
		for i := range beginnings {
			beginnings[i] = shortened(beginnings[i])
		}
		longest = max(longest, utf8.RuneCountInString(beginnings[0]))
		terms = append(terms, beginnings)
	}
	for _, chunk := range searchChunks(text, oneNumber) {
		switch parts := strings.Split(chunk, "."); {
		case len(chunk) > 3 && chunk[0] == '8' && isDigits(chunk):
			add(chunk, chunk[1:]) // 8 is how a call within Russia begins, in place of 7
		case !slices.ContainsFunc(parts, func(p string) bool { return utf8.RuneCountInString(p) > 1 }):
			for _, initial := range parts {
				add(initial)
			}
		default:
			add(chunk)
		}
	}
	if longest < minTerm || len(terms) > maxTerms {
		return nil, fault.Newf(fault.InvalidFilterValue, "search: want at most %d words, and at least %d letters or digits of one of them", maxTerms, minTerm)
	}
	return terms, nil
}

// SearchWords returns the words of texts in the form that terms are compared with: without letter
// case, е for ё, without apostrophes. A number is one word, however its digits are separated. A word
// with hyphens, dots or @ is stored from each of its parts on: салтыков-щедрин and щедрин.
func SearchWords(texts ...string) []string {
	var words []string
	for _, text := range texts {
		if !utf8.ValidString(text) {
			continue // no database stores it
		}
		for _, chunk := range searchChunks(text, true) {
			words = append(words, shortened(chunk))
			if isDigits(chunk) {
				continue
			}
			mail := strings.Contains(chunk, "@")
			for i, r := range chunk {
				if rest := chunk[i+utf8.RuneLen(r):]; joins(r) && utf8.RuneCountInString(rest) > 1 && (!mail || strings.Contains(rest, ".")) {
					words = append(words, shortened(rest))
				}
			}
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

// HasTerms reports whether words have all terms, as FindByWords decides it for users.
func HasTerms(words []string, terms []Term) bool {
	for _, t := range terms {
		if !slices.ContainsFunc(words, func(w string) bool {
			return slices.ContainsFunc(t, func(beginning string) bool { return strings.HasPrefix(w, beginning) })
		}) {
			return false
		}
	}
	return true
}

// PhoneWords returns the words of the normal form of a phone number: people search by the whole
// number, without the code of the country, and by its last digits.
func PhoneWords(normal string) []string {
	words := SearchWords(normal)
	for _, digits := range []int{10, 7, 4} {
		if len(words) > 0 && len(words[0]) > digits && isDigits(words[0]) {
			words = append(words, words[0][len(words[0])-digits:])
		}
	}
	return words
}

// searchChunks folds a text and splits it at what is between words. With oneNumber, numbers that follow each
// other are one number.
func searchChunks(text string, oneNumber bool) []string {
	var folded strings.Builder
	for _, r := range foldText(text) {
		switch {
		case r == 'ё':
			folded.WriteRune('е')
		case strings.ContainsRune("'’‘ʼʹ`´", r) || unicode.In(r, unicode.Cf): // not read aloud
		case unicode.Is(unicode.Pd, r):
			folded.WriteByte('-')
		case unicode.In(r, unicode.L, unicode.N, unicode.M) || joins(r):
			folded.WriteRune(r)
		default:
			folded.WriteByte(' ')
		}
	}
	var chunks []string
	number := false // the last chunk is one
	for _, chunk := range strings.Fields(folded.String()) {
		chunk = strings.TrimFunc(chunk, joins)
		digits := strings.Map(func(r rune) rune {
			if joins(r) && r != '@' && r != '_' {
				return -1
			}
			return r
		}, chunk)
		switch isNumber := isDigits(digits); {
		case chunk == "":
		case isNumber && number && oneNumber:
			chunks[len(chunks)-1] += digits
		case isNumber:
			chunks, number = append(chunks, digits), true
		default:
			chunks, number = append(chunks, chunk), false
		}
	}
	return chunks
}

// joins reports whether a character is inside of words.
func joins(r rune) bool { return strings.ContainsRune("-._@+/", r) }

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// shortened cuts a word to what counts. The same is done to terms.
func shortened(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxWord {
			return word[:i]
		}
	}
	return word
}
