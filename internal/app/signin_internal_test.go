// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"tamga/internal/config"
)

// TestRememberedFor keeps the record of a sign-in at least as long as what was ordered with it may begin
// without a request, asynchronous operations or not: otherwise its end would not be seen.
func TestRememberedFor(t *testing.T) {
	c := config.Default(config.Parts{})
	for _, async := range []bool{false, true} {
		c.Operations.Async = async
		if got, least := rememberedFor(c), c.Confirmation.Life+c.Confirmation.Complete; got < least {
			t.Errorf("async %t: remembered for %s, and an order that its user confirms may begin after %s", async, got, least)
		}
	}
	c.Operations.Life = 48 * time.Hour
	if got := rememberedFor(c); got < c.Operations.Life {
		t.Errorf("remembered for %s, and an asynchronous order may begin after %s", got, c.Operations.Life)
	}
}
