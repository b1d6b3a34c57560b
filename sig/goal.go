// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Goal is the level that an enhancement is to reach.
type Goal struct {
	Level    Level
	Index    int  // of the signature; -1: all
	Nested   bool // a countersignature, whose level is not looked up
	Password []byte
	OverHash bool // the original of the job is a hash value
}

// levelNames are the levels in reports.
var levelNames = map[string]Level{
	"T": LevelTime, "C": LevelTime, "X1": LevelTime, "X-L": LevelLongTerm, "XLT1": LevelLongTerm, "LT": LevelLongTerm, "A": LevelArchive, "LTA": LevelArchive,
}

// Reached returns the result of an enhancement if its signatures have the level, judged with the anchors of the job
// and by the document alone. Without anchors, or without the document of a detached signature, that cannot be judged.
// A result that is worth less than it says is an *ErrEvidence with the finding.
func Reached(ctx context.Context, by Verifier, job *Job, result Result, goal *Goal) (Result, error) {
	document, is := result.(Document)
	if !is || len(job.Roots) == 0 || goal.Nested {
		return result, nil
	}
	check := &Check{Document: document, Describe: true, Password: goal.Password, Certificate: job.Certificate, Roots: job.Roots, Intermediates: job.Chain, At: job.Time}
	if !goal.OverHash {
		check.Original = job.Original
	}
	report, err := by.Verify(ctx, check)
	if err != nil {
		return nil, err
	}
	if err := report.below(goal); err != nil {
		return nil, err
	}
	if job.Judged != nil {
		job.Judged(report)
	}
	return result, nil
}

// Lasts reports whether all signatures have a level and can be verified until a time with what they hold. c is the check that the
// report is the result of.
func (r *Report) Lasts(c *Check, level Level, until time.Time) bool {
	some := false
	for i := range r.Signatures {
		s := &r.Signatures[i]
		if s.IsStamp() {
			continue
		}
		some = true
		if h, ok := s.GoodUntil(c); !ok || levelNames[s.Level] < level || !h.Until.After(until) {
			return false
		}
	}
	return some
}

// below returns an error for a signature that is below the level. Verification names no level above LevelArchive.
func (r *Report) below(goal *Goal) error {
	for i := range r.Signatures {
		s := &r.Signatures[i]
		if s.IsStamp() || s.Signed != nil || goal.Index >= 0 && goal.Index != i || levelNames[s.Level] >= min(goal.Level, LevelArchive) {
			continue
		}
		why := "the verification does not say why"
		if n := len(s.Findings); n > 0 {
			why = s.Findings[n-1].Text
		}
		if i := slices.IndexFunc(s.Findings, func(f Finding) bool { return f.Indication != "" }); i >= 0 {
			why = s.Findings[i].Text
		}
		return &ErrEvidence{What: "level", Text: fmt.Sprintf("signature %d has the level %s only, and nothing was written: %s", i, s.Level, why)}
	}
	return nil
}
