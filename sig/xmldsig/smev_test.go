// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"tamga/pki/suite"
	"tamga/sig/xmltree"
)

func smevOf(t *testing.T, document string) (string, error) {
	t.Helper()
	tree, err := xmltree.Parse([]byte(document), xmltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &signature{tree: tree, node: tree.Root()}
	r := &reference{node: tree.Root(), hash: suite.Streebog256, transforms: []transform{{apply: smevTransform}}}
	d := digester{ctx: context.Background(), sig: s, ref: r}
	var out bytes.Buffer
	err = d.write(target{node: xmltree.Document}, &out)
	return out.String(), err
}

func TestSMEV(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{
			"guidelines 1: rules 1, 2, 6",
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a\n comment -->\n<?xml-stylesheet type=\"text/xsl\" href=\"style.xsl\"?>\n\n" +
				"<elementOne xmlns=\"http://test/1\">\n\t<qwe:elementTwo xmlns:qwe=\"http://test/2\">asd</qwe:elementTwo>  \n</elementOne> ",
			`<ns1:elementOne xmlns:ns1="http://test/1"><ns2:elementTwo xmlns:ns2="http://test/2">asd</ns2:elementTwo></ns1:elementOne>`,
		}, {
			"guidelines 2: rules 4, 5",
			"<elementOne xmlns=\"http://test/1\" xmlns:qwe=\"http://test/2\" xmlns:asd=\"http://test/3\">\n\t<qwe:elementTwo>\n\t\t<asd:elementThree>\n" +
				"\t\t\t<!-- default -->\n\t\t\t<elementFour> z x c </elementFour>\n\t\t\t<qqq:elementFive xmlns:qqq=\"http://test/2\"> w w w </qqq:elementFive>\n" +
				"\t\t</asd:elementThree>\n\t\t<asd:elementSix>eee</asd:elementSix>\n\t</qwe:elementTwo>\n</elementOne>",
			`<ns1:elementOne xmlns:ns1="http://test/1"><ns2:elementTwo xmlns:ns2="http://test/2"><ns3:elementThree xmlns:ns3="http://test/3">` +
				`<ns1:elementFour> z x c </ns1:elementFour><ns2:elementFive> w w w </ns2:elementFive></ns3:elementThree>` +
				`<ns4:elementSix xmlns:ns4="http://test/3">eee</ns4:elementSix></ns2:elementTwo></ns1:elementOne>`,
		}, {
			"guidelines 3: rules 3, 7, 8",
			"<elementOne xmlns=\"http://test/1\" xmlns:qwe=\"http://test/2\" xmlns:asd=\"http://test/3\">\n\t<qwe:elementTwo>\n" +
				"\t\t<asd:elementThree xmlns:wer=\"http://test/a\" xmlns:zxc=\"http://test/0\" wer:attZ=\"zzz\" attB=\"bbb\" attA=\"aaa\" " +
				"zxc:attC=\"ccc\" asd:attD=\"ddd\" asd:attE=\"eee\" qwe:attF=\"fff\"/>\n\t</qwe:elementTwo>  \n</elementOne>",
			`<ns1:elementOne xmlns:ns1="http://test/1"><ns2:elementTwo xmlns:ns2="http://test/2"><ns3:elementThree xmlns:ns3="http://test/3" ` +
				`xmlns:ns4="http://test/0" xmlns:ns5="http://test/a" ns4:attC="ccc" ns2:attF="fff" ns3:attD="ddd" ns3:attE="eee" ns5:attZ="zzz" ` +
				`attA="aaa" attB="bbb"></ns3:elementThree></ns2:elementTwo></ns1:elementOne>`,
		},
		{"rule 9: attributes", `<a xmlns="urn:u" x="&lt;&gt;&amp;'&quot;&#9;&#10;&#13;"/>`, `<ns1:a xmlns:ns1="urn:u" x="&lt;>&amp;'&quot;&#x9;&#xa;&#xd;"></ns1:a>`},
		{"rule 9: a short text", `<a xmlns="urn:u">a>b]>c</a>`, `<ns1:a xmlns:ns1="urn:u">a>b]&gt;c</ns1:a>`},
		{"rule 9: at the beginning", `<a xmlns="urn:u">>b</a>`, `<ns1:a xmlns:ns1="urn:u">&gt;b</ns1:a>`},
		{"rule 9: a short text behind an escape", `<a xmlns="urn:u">a&lt;>b</a>`, `<ns1:a xmlns:ns1="urn:u">a&lt;>b</ns1:a>`},
		{"rule 9: a long text behind an escape", `<a xmlns="urn:u">a&lt;>>b and more</a>`, `<ns1:a xmlns:ns1="urn:u">a&lt;&gt;&gt;b and more</ns1:a>`},
		{"rule 9: pieces of 512", `<a xmlns="urn:u">` + strings.Repeat("x", 512) + `>` + strings.Repeat("x", 510) + `>></a>`,
			`<ns1:a xmlns:ns1="urn:u">` + strings.Repeat("x", 512) + `&gt;` + strings.Repeat("x", 510) + `>&gt;</ns1:a>`},
		{"rule 9: a carriage return", "<a xmlns='urn:u'>a&#13;b</a>", "<ns1:a xmlns:ns1=\"urn:u\">a&#xd;b</ns1:a>"},
		{"CDATA", "<a xmlns='urn:u'> <![CDATA[<]]> </a>", "<ns1:a xmlns:ns1=\"urn:u\"> &lt; </ns1:a>"},
		{"the order of UTF-16", "<a xmlns='urn:u' \U00010000='1' \uFA0E='2'/>", "<ns1:a xmlns:ns1=\"urn:u\" \U00010000=\"1\" \uFA0E=\"2\"></ns1:a>"},
	} {
		got, err := smevOf(t, test.in)
		if err != nil || got != test.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", test.name, err, got, test.want)
		}
		// The output goes in again and comes out the same, except for escapes that depend
		// on the place.
		if again, err := smevOf(t, got); err != nil || again != got {
			t.Errorf("%s: once more: %v\n%s", test.name, err, again)
		}
	}
	if _, err := smevOf(t, "<a/>"); err == nil || !strings.Contains(err.Error(), "without a namespace") {
		t.Errorf("without a namespace: %v", err)
	}
}
