// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/fault"
)

// TestRefusalsWait: a caller that a guard refuses waits for the answer, unless very many wait already.
func TestRefusalsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.DiscardHandler)}, []Route{
			Handle("POST /x", "X", Anyone, func(context.Context, struct{}) (int, error) { return 0, nil }).
				Guarded(func(string) error { return fault.New(fault.TooManyRequests, "too many") }),
		})
		ask := func(ctx context.Context) time.Duration {
			begin := time.Now()
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "POST", "/x", nil))
			if answer.Code != http.StatusTooManyRequests {
				t.Errorf("answered %d, want a refusal", answer.Code)
			}
			return time.Since(begin)
		}
		if took := ask(t.Context()); took != refusalWait {
			t.Errorf("refused after %s, want %s", took, refusalWait)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if took := ask(gone); took != 0 {
			t.Errorf("a caller that is gone waits %s", took)
		}
		var all sync.WaitGroup
		for range refusalsAwait {
			all.Go(func() { ask(t.Context()) })
		}
		synctest.Wait()
		if took := ask(t.Context()); took != 0 {
			t.Errorf("beside %d that wait, a caller waits %s", refusalsAwait, took)
		}
		all.Wait()
	})
}
