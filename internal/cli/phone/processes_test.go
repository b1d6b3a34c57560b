// SPDX-License-Identifier: Apache-2.0

package phone_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	devmsg "tamga/internal/domain/device/message"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"

	"tamga/internal/tamgatest"
)

// TestOneDeviceOfManyProcesses: a thousand devices answer one QR code with the right
// activation code at once, at three servers over one database, and one has it.
func TestOneDeviceOfManyProcesses(t *testing.T) {
	devices := 1000
	if testsize.Of() < testsize.Whole {
		devices = 200
	}
	for _, engine := range []struct {
		name     string
		database func(t *testing.T) []string
	}{
		{"SQLite", func(*testing.T) []string { return nil }},
		{"PostgreSQL", func(t *testing.T) []string {
			return []string{"--set", "database=" + storetest.PostgreSQL(t).Migrated(t)}
		}},
	} {
		t.Run(engine.name, func(t *testing.T) {
			more := append(engine.database(t), "--set", "devices.calls_at_once=100000", "--set", "devices.calls_per_second=100000")
			w := tamgatest.StartUMSProcess(t, t.TempDir(), more...)
			urls := []string{w.URL}
			for range 2 {
				urls = append(urls, w.Another().URL)
			}
			id, _, phone, _ := w.Register()
			w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/phones/"+phone+"/confirm", "")
			_, text, kid := w.KInit(id, `{"Msisdn":"`+phone+`"}`)
			parsed, err := devmsg.ParseQR(text)
			if err != nil {
				t.Fatal(err)
			}
			content, err := devmsg.ReadSecret(parsed.(devmsg.KInit).Data.KeyContent)
			if err != nil {
				t.Fatal(err)
			}
			code := w.ActivationCode(phone)
			bodies := make([][]byte, devices)
			for i := range bodies {
				key, err := suite.ECDSAP256.Generate(nil)
				if err != nil {
					t.Fatal(err)
				}
				spki, err := x509gost.MarshalPublicKey(key.Public(), suite.ECDSAP256)
				if err != nil {
					t.Fatal(err)
				}
				h := devmsg.Header{Type: devmsg.Register, Service: w.Dev.DevicesURL, Key: spki, Number: 1, Time: time.Now().Unix()}
				signed, err := devmsg.Sign(h, devmsg.Registration{KInit: &devmsg.KInitAnswer{
					Kid: kid, Proof: devmsg.KInitProof(content, kid, spki), Code: code,
				}}, key, suite.ECDSAP256, nil)
				if err != nil {
					t.Fatal(err)
				}
				if bodies[i], err = json.Marshal(signed); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			outcomes := map[string]int{}
			var group sync.WaitGroup
			next := make(chan int)
			for range 48 {
				group.Go(func() {
					for i := range next {
						response, err := http.Post(urls[i%len(urls)]+"/DssApiGateway/v1/register", "application/json", bytes.NewReader(bodies[i]))
						if err != nil {
							t.Error(err)
							continue
						}
						status, body := tamgatest.ReadAll(t, response)
						var refused struct{ Error string }
						json.Unmarshal(body, &refused)
						mu.Lock()
						outcomes[fmt.Sprint(status, " ", refused.Error)]++
						mu.Unlock()
					}
				})
			}
			for i := range devices {
				next <- i
			}
			close(next)
			group.Wait()
			t.Logf("%v", outcomes)
			if outcomes["200 "] != 1 {
				t.Errorf("%d devices were registered, want one", outcomes["200 "])
			}
			for outcome := range outcomes {
				switch outcome {
				case "200 ", "400 key_not_found", "503 temporarily_unavailable":
				default:
					t.Errorf("the answer %q", outcome)
				}
			}
			var info struct{ Keys []struct{ Kid, State string } }
			w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/mydss", "").Into(t, &info)
			if len(info.Keys) != 1 || info.Keys[0].Kid != kid {
				t.Errorf("the operator sees %+v", info)
			}
		})
	}
}
