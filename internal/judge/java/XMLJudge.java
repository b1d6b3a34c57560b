// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayInputStream;
import java.io.File;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import javax.xml.crypto.dsig.XMLSignature;
import javax.xml.crypto.dsig.XMLSignatureFactory;
import javax.xml.crypto.dsig.dom.DOMValidateContext;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/** Judges the first signature of each file, by the first certificate in it: one line for each, OK or FAIL and why. */
public class XMLJudge {
    static final String DS = XMLSignature.XMLNS;

    static void identify(Element e) {
        if (e.hasAttribute("Id")) {
            e.setIdAttribute("Id", true);
        }
        for (Node c = e.getFirstChild(); c != null; c = c.getNextSibling()) {
            if (c instanceof Element) {
                identify((Element) c);
            }
        }
    }

    static String judge(String file) {
        try {
            DocumentBuilderFactory builders = DocumentBuilderFactory.newInstance();
            builders.setNamespaceAware(true);
            Document document = builders.newDocumentBuilder().parse(new File(file));
            identify(document.getDocumentElement());
            String text = document.getElementsByTagNameNS(DS, "X509Certificate").item(0).getTextContent();
            X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(Base64.getMimeDecoder().decode(text)));
            Node node = document.getElementsByTagNameNS(DS, "Signature").item(0);
            DOMValidateContext context = new DOMValidateContext(certificate.getPublicKey(), node);
            boolean valid = XMLSignatureFactory.getInstance("DOM").unmarshalXMLSignature(context).validate(context);
            return valid ? "OK" : "FAIL the signature does not hold";
        } catch (Exception e) {
            return "FAIL " + e.toString().replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] files) {
        for (String file : files) {
            System.out.println(judge(file));
        }
    }
}
