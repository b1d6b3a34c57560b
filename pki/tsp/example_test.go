// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"tamga/pki/suite"
	"tamga/pki/tsp"
)

// The example makes a request for a time stamp. A client sends it as the body of a POST with
// the media type application/timestamp-query. ParseResponse reads the response, and Answers
// and CheckSignature check the token.
func ExampleRequest() {
	nonce := make([]byte, 8)
	if _, err := rand.Read(nonce); err != nil {
		fmt.Println(err)
		return
	}
	request := &tsp.Request{Digest: suite.Streebog256.Digest([]byte("a document")), Nonce: nonce, CertReq: true}
	body, err := request.Marshal()
	if err != nil {
		fmt.Println(err)
		return
	}

	check := func(response []byte) error {
		token, err := tsp.ParseResponse(response)
		if err != nil {
			return err
		}
		if err := token.Answers(request); err != nil {
			return err
		}
		_, err = token.CheckSignature(nil) // the authority's certificate, for package chain
		return err
	}
	fmt.Println(len(body) > 0, check(tsp.CreateRejection(tsp.Rejection, tsp.TimeNotAvailable, "the clock is being set")))

	read, err := tsp.ParseRequest(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hex.EncodeToString(read.Digest.Sum[:4]))
	// Output:
	// true tsp: the time-stamping authority refused (status 2, timeNotAvailable): "the clock is being set"
	// aa50a5f5
}
