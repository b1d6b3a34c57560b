// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/user"
)

// Where the words of a user come from.
const (
	sourceLogin    = "login"
	sourceShown    = "shown"
	sourceName     = "name"
	sourceExternal = "external " // and the issuer
	sourceContact  = "contact "  // and the type and the normal form
)

func sourceOf(t contact.Type, normal string) string { return sourceContact + string(t) + " " + normal }

func isContact(source string) bool { return strings.HasPrefix(source, sourceContact) }

// contactWords returns the words of a contact.
func contactWords(t contact.Type, normal string) []string {
	if t == contact.PhoneNumber {
		return user.PhoneWords(normal)
	}
	return user.SearchWords(normal)
}

// countryOID is the component of names that is the same for nearly everybody.
const countryOID = "2.5.4.6"

// wordsOf returns the words of a name.
func wordsOf(n user.Name) []string {
	var values []string
	for _, oid := range slices.Sorted(maps.Keys(n.Values)) {
		if oid != countryOID {
			values = append(values, n.Values[oid])
		}
	}
	return user.SearchWords(values...)
}

var (
	addTexts = newInsertion(1, "user_texts", "user_id, source, words", "")
	// Words of two sources may be equal. Such a row does not make Together begin again, as with ifFree.
	addWords = newInsertion(1, "user_words", "word, user_id", " ON CONFLICT (word, user_id) DO NOTHING")
)

// insertAll adds rows as insert does.
func (db *DB) insertAll(ctx context.Context, in *insertion, rows [][]any) error {
	t := db.transaction(ctx)
	if t == nil {
		return fmt.Errorf("store: rows are added outside of a transaction")
	}
	if t.later != nil && !t.later.alone {
		for _, r := range rows {
			t.later.add(in, legible(r))
		}
		return nil
	}
	for _, r := range rows {
		legible(r)
	}
	_, err := in.addTo(ctx, t, rows)
	return err
}

// addWords adds the words of a source that the user does not have yet, in a transaction that has locked
// the user.
func (db *DB) addWords(ctx context.Context, userID, source string, words []string) error {
	if len(words) == 0 {
		return nil
	}
	if err := db.insertAll(ctx, addTexts, [][]any{{userID, source, wordText(words)}}); err != nil {
		return err
	}
	return db.insertWords(ctx, userID, words)
}

func (db *DB) insertWords(ctx context.Context, userID string, words []string) error {
	rows := make([][]any, len(words))
	for i, w := range words {
		rows[i] = []any{w, userID}
	}
	return db.insertAll(ctx, addWords, rows)
}

// wordText returns words with a blank before each.
func wordText(words []string) string { return " " + strings.Join(words, " ") }

// setWords replaces the words of a source, in a transaction that has locked the user.
func (db *DB) setWords(ctx context.Context, userID, source string, words []string) error {
	if err := db.dropWords(ctx, userID, func(s string) bool { return s == source }); err != nil {
		return err
	}
	return db.addWords(ctx, userID, source, words)
}

// dropWords deletes the words of some sources, in a transaction that has locked the user.
func (db *DB) dropWords(ctx context.Context, userID string, drops func(source string) bool) error {
	type text struct{ source, words string }
	list, err := all(ctx, db, func(r row) (t text, err error) {
		err = r.Scan(&t.source, &t.words)
		return t, err
	}, "SELECT source, words FROM user_texts WHERE user_id = $1", userID)
	if err != nil {
		return err
	}
	gone, kept := map[string]bool{}, map[string]bool{}
	for _, t := range list {
		of := kept
		if drops(t.source) {
			of = gone
			if _, err := db.exec(ctx, "DELETE FROM user_texts WHERE user_id = $1 AND source = $2", userID, t.source); err != nil {
				return err
			}
		}
		for _, w := range strings.Fields(t.words) {
			of[w] = true
		}
	}
	maps.DeleteFunc(gone, func(w string, _ bool) bool { return kept[w] })
	for some := range slices.Chunk(slices.Sorted(maps.Keys(gone)), 100) {
		args, isOne := among([]any{userID}, some)
		if _, err := db.exec(ctx, "DELETE FROM user_words WHERE user_id = $1 AND word "+isOne, args...); err != nil {
			return err
		}
	}
	return nil
}

// endOfPrefix follows all texts that begin with a prefix, in the order of bytes.
const endOfPrefix = "\U0010FFFF"

// begins returns the condition that a column begins with one of the texts of a term, with its arguments
// added. The index of the column finds such rows.
func begins(column string, t user.Term, args []any) (string, []any) {
	var parts []string
	for _, text := range t {
		args = append(args, text, text+endOfPrefix)
		parts = append(parts, fmt.Sprintf("%[1]s >= $%[2]d AND %[1]s < $%[3]d", column, len(args)-1, len(args)))
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// hasTerm returns the condition that a user has a term, with its arguments added: in the words of some sources, or of
// any.
func hasTerm(userID string, t user.Term, args []any, sources ...string) (string, []any) {
	var parts []string
	for _, text := range t {
		args = append(args, likePattern([]string{"", " " + text, ""}))
		parts = append(parts, fmt.Sprintf(`t.words LIKE $%d ESCAPE '\'`, len(args)))
	}
	of := ""
	if len(sources) > 0 {
		args, of = among(args, sources)
		of = " AND t.source " + of
	}
	return onePerRow("SELECT 1 FROM user_texts t WHERE t.user_id = " + userID + of + " AND (" + strings.Join(parts, " OR ") + ")"), args
}

// wordsAUser is how many words with the same beginning a user has at most, as a rule. PostgreSQL reads all rows
// before it removes equal ones, so FindUsers first reads so many rows for each user.
const wordsAUser = 4

// FindUsers implements user.SearchStore. The search of an operator of few users begins with these
// users. For others it begins with the term that the fewest words have, as far as wordCounts show.
func (s Users) FindUsers(ctx context.Context, operatorID string, terms []user.Term, limit int, now time.Time) ([]user.Place, error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return nil, err
	}
	args := []any{operatorID, millis(now)}
	first, query := usersFirst, people+"SELECT %s u.login_folded, u.id FROM people p CROSS JOIN users u WHERE u.id = p.id"
	of := "u.id"
	if !few {
		if first, err = s.rarestTerm(ctx, terms, wordCounts); err != nil {
			return nil, err
		}
		var begin string
		begin, args = begins("x.word", terms[first], args)
		query = "SELECT %s u.login_folded, u.id FROM user_words x CROSS JOIN users u WHERE " + begin + " AND u.id = x.user_id AND " + reaches
		of = "x.user_id"
	}
	for i, t := range terms {
		if i != first {
			var has string
			has, args = hasTerm(of, t, args)
			query += " AND " + has
		}
	}
	query += fmt.Sprintf(" LIMIT $%d", len(args)+1)
	found, err := s.distinctPlaces(ctx, query, args, limit)
	if err == nil && len(terms) == 1 { // the serial number of a token
		begin, args := begins("x.serial_key", terms[0], []any{operatorID, millis(now)})
		var holders []user.Place
		holders, err = s.places(ctx, fmt.Sprintf("SELECT u.login_folded, u.id FROM oath_tokens x CROSS JOIN users u WHERE %s AND u.id = x.user_id AND %s LIMIT %d", begin, reaches, limit), args)
		found = append(found, holders...)
	}
	found = distinct(found)
	return found[:min(len(found), limit)], err
}

// distinctPlaces returns at most limit places of a query that ends in a limit, and begins with a verb for DISTINCT.
func (s Users) distinctPlaces(ctx context.Context, query string, args []any, limit int) (found []user.Place, err error) {
	if s.engine == sqliteEngine { // it removes rows while it reads, and ends at the limit
		return s.places(ctx, fmt.Sprintf(query, "DISTINCT"), append(args, limit))
	}
	found, err = s.places(ctx, fmt.Sprintf(query, ""), append(args, limit*wordsAUser))
	if err == nil && len(found) == limit*wordsAUser {
		if found = distinct(found); len(found) < limit { // some users have many words that begin so
			found, err = s.places(ctx, fmt.Sprintf(query, "DISTINCT"), append(args, limit))
		}
	}
	return found, err
}

// NamedUsers implements user.SearchStore.
func (s Users) NamedUsers(ctx context.Context, groups []string, terms []user.Term, limit int) ([]user.User, error) {
	first, err := s.rarestTerm(ctx, terms, wordCounts)
	if err != nil {
		return nil, err
	}
	begin, args := begins("x.word", terms[first], nil)
	query := "SELECT %s u.login_folded, u.id FROM user_words x CROSS JOIN users u WHERE " + begin + " AND u.id = x.user_id"
	if groups != nil {
		var isOne string
		args, isOne = among(args, groups)
		query += " AND u.group_name " + isOne
	}
	for _, t := range terms { // the word of the first one may be of another source
		var has string
		has, args = hasTerm("x.user_id", t, args, sourceLogin, sourceShown)
		query += " AND " + has
	}
	found, err := s.distinctPlaces(ctx, query+fmt.Sprintf(" LIMIT $%d", len(args)+1), args, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	found = distinct(found)
	ids := make([]string, 0, limit)
	for _, p := range found[:min(len(found), limit)] {
		ids = append(ids, p.ID)
	}
	args, isOne := among(nil, ids)
	return allUnprepared(ctx, s.DB, scanUser, "SELECT "+userColumns+" FROM users u WHERE u.id "+isOne+" ORDER BY u.login_folded", args...)
}

// distinct sorts places and removes those that are there twice.
func distinct(places []user.Place) []user.Place {
	slices.SortFunc(places, func(a, b user.Place) int { return strings.Compare(a.Key, b.Key) })
	return slices.Compact(places)
}

func (s Users) places(ctx context.Context, query string, args []any) ([]user.Place, error) {
	return allUnprepared(ctx, s.DB, func(r row) (p user.Place, err error) {
		err = r.Scan(&p.Key, &p.ID)
		return p, err
	}, query, args...)
}

// wordCounts are up to how many words of a term a search counts, in rounds. A round that tells the terms apart is the last
// one. The last count takes some 10 ms for a term; to begin with the wrong one of two frequent terms takes many times that. A
// term with more words is one of 8 % of a million people, so that the first thousand matches are near.
var wordCounts = []int{mostFound + 1, 8 * mostFound}

// rarestTerm returns the number of the term that the fewest words begin with, counted up to each of the bounds. Of those
// with more words it is the longest.
func (s Users) rarestTerm(ctx context.Context, terms []user.Term, bounds []int) (first int, err error) {
	if len(terms) == 1 {
		return 0, nil
	}
	for _, most := range bounds {
		fewest := int64(most) + 1
		for i, t := range terms {
			begin, args := begins("x.word", t, nil)
			n, err := allUnprepared(ctx, s.DB, scalar[int64], fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM user_words x WHERE %s LIMIT %d) AS counted", begin, most), args...)
			if err != nil {
				return 0, err
			}
			if n[0] < fewest || n[0] == fewest && len(t[0]) > len(terms[first][0]) {
				first, fewest = i, n[0]
			}
		}
		if fewest < int64(most) {
			return first, nil
		}
	}
	return first, nil
}
