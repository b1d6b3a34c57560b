// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"fmt"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/evidence"
)

// A format collects what a signature needs after its certificate has expired. Here the services are
// those of the tests.
func Example() {
	t := new(testing.T)
	root := sigtest.Root(t, suite.ECDSAP256)
	authority := root.Authority(t, "Example Authority")
	signer := authority.Signer(t, suite.ECDSAP256, "Example Signer")
	var services sig.Evidence = sigtest.NewServices(t, root, authority)

	collector := evidence.New(services, signer.Chain, evidence.Rules{})
	var values evidence.Values
	chain, err := collector.Collect(context.Background(), &values, evidence.Subject{
		Certificate: signer.Certificate,
		Purpose:     evidence.ForSigner,
		At:          sigtest.Time, // of the latest time stamp
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range chain.Path {
		if s := chain.Statuses[i]; s != nil {
			fmt.Println(c.Subject, "was good at", s.ThisUpdate.Format("2006-01-02 15:04"))
		}
	}
	// The issuers with the responders that answered for them, and the answers.
	fmt.Println(len(values.Certificates), "certificates,", len(values.CRLs), "lists,", len(values.OCSP), "answers")
	// Output:
	// CN=Example Signer,C=RU was good at 2025-03-14 09:26
	// CN=Example Authority,C=RU was good at 2025-03-14 09:26
	// 4 certificates, 0 lists, 2 answers
}
