package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tamga/internal/domain/auth"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
)

// glanceLife is how long what a glance saw may serve its request. A request that
// takes longer, for one with a document that takes its time to come in, reads
// everything anew.
const glanceLife = 100 * time.Millisecond

// glance is all that a signature by the bearer of a token depends on, as one
// statement saw it when the request came in: rooms ask for it piece by piece, and
// a statement for each piece costs more than the signature. It belongs to one
// request, so what was committed before a request came in counts in it, whoever
// committed it. Whatever the request itself changes ends it.
type glance struct {
	mu   sync.Mutex
	seen *sight // nil: nothing, or not any more
	at   time.Time
}

// sight is what a glance saw.
type sight struct {
	bearer      auth.Bearer
	access      standing // policies, of which only actions are read
	operation   standing
	certificate *keys.CertificateRecord // the default one
	key         keys.KeyRecord          // of that
	authorities []authority.Standing
}

type glanceKey struct{ db *DB }

// Glancing is for the requests of people who sign: in the context it returns,
// [Tokens.BearerByToken] looks at all that a signature by the bearer depends on in
// one statement.
func (db *DB) Glancing(ctx context.Context) context.Context {
	return context.WithValue(ctx, glanceKey{db}, &glance{})
}

func (db *DB) glance(ctx context.Context) *glance {
	g, _ := ctx.Value(glanceKey{db}).(*glance)
	return g
}

// sight is what was seen a moment ago for the request in ctx, or nil. A transaction
// reads for itself.
func (db *DB) sight(ctx context.Context) *sight {
	g := db.glance(ctx)
	if g == nil || db.transaction(ctx) != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen != nil && time.Since(g.at) >= glanceLife {
		g.seen = nil
	}
	return g.seen
}

// endGlance is called before the request in ctx changes anything.
func (db *DB) endGlance(ctx context.Context) {
	if g := db.glance(ctx); g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = nil
	}
}

// glanceQuery reads a sight by the id of a token. The lists of the authorities are
// one column, as package authority names them: no name has a space or a line feed.
var glanceQuery = "SELECT " + bearerColumns + `,
		pa.denied, ga.actions, ga.fixed, po.actions, go.actions, go.fixed,
		c.id, c.key_id, c.certificate, c.serial, c.friendly_name, c.created_at, c.outside,
		COALESCE(i.revoked_at, c.standing_revoked_at, 0), COALESCE(i.reason, c.standing_reason, 0), COALESCE(c.revocation_comment, ''),
		(c.outside OR i.serial IS NOT NULL),
		k.suite, k.sealed, k.has_pin, k.created_at,
		(SELECT STRING_AGG(a.name || ' ' || a.crl_number || ' ' || a.crl_at, '` + "\n" + `') FROM authorities a)
	FROM ` + bearerTables + `
		LEFT JOIN access_policies pa ON pa.user_id = u.id
		LEFT JOIN group_policies ga ON ga.group_name = u.group_name AND ga.kind = '` + string(policy.Access) + `'
		LEFT JOIN user_policies po ON po.user_id = u.id AND po.kind = '` + string(policy.Operation) + `'
		LEFT JOIN group_policies go ON go.group_name = u.group_name AND go.kind = '` + string(policy.Operation) + `'
		LEFT JOIN default_certificates d ON d.user_id = u.id
		LEFT JOIN certificates c ON c.user_id = u.id AND c.id = d.certificate_id
		LEFT JOIN issued_certificates i ON i.serial = c.serial AND NOT c.outside
		LEFT JOIN keys k ON k.id = c.key_id
	WHERE t.id = $1`

func scanSight(r row) (*sight, error) {
	s := &sight{}
	var denied, accessActions, ownActions, operationActions, id sql.NullInt64
	var accessFixed, operationFixed, outside, known, hasPIN sql.NullBool
	var keyID, friendlyName, keySuite, authorities sql.NullString
	var der, serial, sealed []byte
	var certificateAt, revokedAt, keyAt nullTime
	var reason int
	var comment string
	if err := r.Scan(append(bearerFields(&s.bearer),
		&denied, &accessActions, &accessFixed, &ownActions, &operationActions, &operationFixed,
		&id, &keyID, &der, &serial, &friendlyName, &certificateAt, &outside, &revokedAt, &reason, &comment, &known,
		&keySuite, &sealed, &hasPIN, &keyAt, &authorities)...); err != nil {
		return nil, err
	}
	setting := func(actions sql.NullInt64, fixed bool) *policy.Setting {
		if !actions.Valid {
			return nil
		}
		return &policy.Setting{Actions: policy.Action(actions.Int64), Fixed: fixed}
	}
	s.access = standing{setting(denied, false), setting(accessActions, accessFixed.Bool)}
	s.operation = standing{setting(ownActions, false), setting(operationActions, operationFixed.Bool)}
	if id.Valid && known.Bool {
		user := s.bearer.User.ID
		s.certificate = &keys.CertificateRecord{
			ID: id.Int64,
			NewCertificate: keys.NewCertificate{
				UserID: user, KeyID: keyID.String, DER: der, Serial: serial, FriendlyName: friendlyName.String,
				CreatedAt: time.Time(certificateAt), Outside: outside.Bool,
			},
			HasPIN: hasPIN.Bool, Default: true, RevokedAt: time.Time(revokedAt), Reason: reason, Comment: comment,
		}
		s.key = keys.KeyRecord{
			ID: keyID.String, UserID: user, Suite: keySuite.String, Sealed: sealed, HasPIN: hasPIN.Bool, CreatedAt: time.Time(keyAt),
		}
	}
	var err error
	s.authorities, err = readStandings(authorities.String)
	return s, err
}

// readStandings reads the last column of glanceQuery.
func readStandings(text string) ([]authority.Standing, error) {
	var list []authority.Standing
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, at, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, errors.New("store: the number of a revocation list is none")
		}
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, errors.New("store: the time of a revocation list is none")
		}
		list = append(list, authority.Standing{Name: name, CRLNumber: n, CRLAt: fromMillis(ms)})
	}
	sortStandings(list)
	return list, nil
}

// sortStandings gives one order whatever the collation of a database.
func sortStandings(list []authority.Standing) {
	slices.SortFunc(list, func(a, b authority.Standing) int { return cmp.Compare(a.Name, b.Name) })
}

// look takes the glance of the request in ctx. found is false for an unknown token;
// ok is false when ctx is not one to glance in.
func (db *DB) look(ctx context.Context, tokenID string, now time.Time) (b auth.Bearer, found, ok bool, err error) {
	g := db.glance(ctx)
	if g == nil || db.transaction(ctx) != nil {
		return b, false, false, nil
	}
	db.endGlance(ctx)
	begun := time.Now()
	s, found, err := one(ctx, db, scanSight, glanceQuery, tokenID, millis(now))
	if err != nil || !found {
		return b, false, true, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen, g.at = s, begun
	return s.bearer, true, true, nil
}
