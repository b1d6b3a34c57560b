// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
)

// Factors knows what users sign in and confirm with; *signin.Service satisfies it.
type Factors interface {
	// HasFactor reports whether the user has something to sign in or confirm with, also something
	// that is blocked or expired.
	HasFactor(ctx context.Context, userID string) (bool, error)
}

// Rules decide what requests wait for. It is the one place that does: by the effects of a request
// and by what is stored, when the request is made and again when it is carried out.
type Rules struct {
	Requests *Service
	Approve  effect.Set    // with any of them, a second operator must approve
	Delay    time.Duration // of what could take over the account of a user with a factor; 0: none
	Factors  Factors
}

// Weighs reports whether requests with any of these effects may wait.
func (r *Rules) Weighs(e effect.Set) bool {
	return e&r.Approve != 0 || r.Delay > 0 && e&effect.Takeover != 0
}

// Hold is [Service.Hold] with what the call needs now.
func (r *Rules) Hold(ctx context.Context, who audit.Principal, c Call) (*Admission, error) {
	needs := Needs{Approval: c.Effects&r.Approve != 0}
	if r.Delay > 0 && c.Effects&effect.Takeover != 0 && c.Object != "" {
		has, err := r.Factors.HasFactor(ctx, c.Object)
		if err != nil {
			return nil, err
		}
		if has {
			needs.Delay = r.Delay
		}
	}
	return r.Requests.Hold(ctx, who, c, needs)
}
