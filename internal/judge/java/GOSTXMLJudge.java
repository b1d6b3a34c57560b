// SPDX-License-Identifier: Apache-2.0

import com.sun.org.apache.xml.internal.security.Init;
import com.sun.org.apache.xml.internal.security.algorithms.JCEMapper;
import com.sun.org.apache.xml.internal.security.algorithms.SignatureAlgorithm;
import com.sun.org.apache.xml.internal.security.algorithms.SignatureAlgorithmSpi;
import com.sun.org.apache.xml.internal.security.signature.XMLSignature;
import com.sun.org.apache.xml.internal.security.signature.XMLSignatureException;
import java.io.File;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import javax.xml.parsers.DocumentBuilderFactory;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.rosstandart.RosstandartObjectIdentifiers;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.Certificate;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * Judges the first signature of each file, by the first certificate in it, with the Santuario of the Java platform,
 * to which the algorithms of GOST are registered with Bouncy Castle behind them: one line for each file, OK or FAIL
 * and why.
 */
public class GOSTXMLJudge {
    static final String DS = "http://www.w3.org/2000/09/xmldsig#";
    static final String MORE = "http://www.w3.org/2001/04/xmldsig-more#";
    static final String URN = "urn:ietf:params:xml:ns:cpxmlsec:algorithms:";

    /** A signature algorithm of Santuario by one of Bouncy Castle; SignatureValue is s and r, as Bouncy Castle has it. */
    public abstract static class Algorithm extends SignatureAlgorithmSpi {
        private final Signature signature;

        Algorithm(String name) throws GeneralSecurityException {
            signature = Signature.getInstance(name, "BC");
        }

        interface Step {
            void run() throws GeneralSecurityException;
        }

        private static void wrap(Step step) throws XMLSignatureException {
            try {
                step.run();
            } catch (GeneralSecurityException e) {
                throw new XMLSignatureException(e);
            }
        }

        protected String engineGetURI() {
            return null;
        }

        protected String engineGetJCEAlgorithmString() {
            return signature.getAlgorithm();
        }

        protected String engineGetJCEProviderName() {
            return "BC";
        }

        protected void engineInitVerify(Key key) throws XMLSignatureException {
            wrap(() -> signature.initVerify((PublicKey) key));
        }

        protected void engineUpdate(byte b) throws XMLSignatureException {
            wrap(() -> signature.update(b));
        }

        protected void engineUpdate(byte[] b) throws XMLSignatureException {
            wrap(() -> signature.update(b));
        }

        protected void engineUpdate(byte[] b, int from, int length) throws XMLSignatureException {
            wrap(() -> signature.update(b, from, length));
        }

        protected boolean engineVerify(byte[] value) throws XMLSignatureException {
            try {
                return signature.verify(value);
            } catch (GeneralSecurityException e) {
                throw new XMLSignatureException(e);
            }
        }

        protected void engineSetParameter(AlgorithmParameterSpec spec) throws XMLSignatureException {
            throw new XMLSignatureException();
        }

        protected void engineSetHMACOutputLength(int length) throws XMLSignatureException {
            throw new XMLSignatureException();
        }

        protected void engineInitSign(Key key) throws XMLSignatureException {
            wrap(() -> signature.initSign((PrivateKey) key));
        }

        protected void engineInitSign(Key key, SecureRandom random) throws XMLSignatureException {
            wrap(() -> signature.initSign((PrivateKey) key, random));
        }

        protected void engineInitSign(Key key, AlgorithmParameterSpec spec) throws XMLSignatureException {
            throw new XMLSignatureException();
        }

        protected byte[] engineSign() throws XMLSignatureException {
            throw new XMLSignatureException();
        }
    }

    public static class GOST2001 extends Algorithm {
        public GOST2001() throws GeneralSecurityException {
            super("GOST3411WITHECGOST3410");
        }
    }

    public static class GOST2012of256 extends Algorithm {
        public GOST2012of256() throws GeneralSecurityException {
            super("GOST3411-2012-256WITHECGOST3410-2012-256");
        }
    }

    public static class GOST2012of512 extends Algorithm {
        public GOST2012of512() throws GeneralSecurityException {
            super("GOST3411-2012-512WITHECGOST3410-2012-512");
        }
    }

    static void register() throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        Init.init();
        SignatureAlgorithm.register(URN + "gostr34102001-gostr3411", GOST2001.class);
        SignatureAlgorithm.register(MORE + "gostr34102001-gostr3411", GOST2001.class);
        SignatureAlgorithm.register(URN + "gostr34102012-gostr34112012-256", GOST2012of256.class);
        SignatureAlgorithm.register(URN + "gostr34102012-gostr34112012-512", GOST2012of512.class);
        digest(URN + "gostr3411", "GOST3411");
        digest(MORE + "gostr3411", "GOST3411");
        digest(URN + "gostr34112012-256", "GOST3411-2012-256");
        digest(URN + "gostr34112012-512", "GOST3411-2012-512");
    }

    static void digest(String uri, String name) {
        JCEMapper.register(uri, new JCEMapper.Algorithm("", name, "MessageDigest"));
    }

    /** The key of a certificate; Bouncy Castle 1.72 wants the digest in its parameters, which RFC 9215 leaves out. */
    static PublicKey key(byte[] certificate) throws Exception {
        SubjectPublicKeyInfo info = Certificate.getInstance(certificate).getSubjectPublicKeyInfo();
        ASN1ObjectIdentifier algorithm = info.getAlgorithm().getAlgorithm();
        ASN1ObjectIdentifier digest =
            algorithm.equals(RosstandartObjectIdentifiers.id_tc26_gost_3410_12_256) ? RosstandartObjectIdentifiers.id_tc26_gost_3411_12_256
            : algorithm.equals(RosstandartObjectIdentifiers.id_tc26_gost_3410_12_512) ? RosstandartObjectIdentifiers.id_tc26_gost_3411_12_512
            : null;
        ASN1Sequence parameters = ASN1Sequence.getInstance(info.getAlgorithm().getParameters());
        if (digest != null && parameters.size() == 1) {
            AlgorithmIdentifier full = new AlgorithmIdentifier(algorithm,
                new DERSequence(new ASN1Encodable[] {parameters.getObjectAt(0), digest}));
            info = new SubjectPublicKeyInfo(full, info.getPublicKeyData().getBytes());
        }
        return KeyFactory.getInstance(algorithm.getId(), "BC").generatePublic(new X509EncodedKeySpec(info.getEncoded()));
    }

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
            Element node = (Element) document.getElementsByTagNameNS(DS, "Signature").item(0);
            boolean valid = new XMLSignature(node, "", true).checkSignatureValue(key(Base64.getMimeDecoder().decode(text)));
            return valid ? "OK" : "FAIL the signature does not hold";
        } catch (Exception e) {
            return "FAIL " + e.toString().replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] files) throws Exception {
        register();
        for (String file : files) {
            System.out.println(judge(file));
        }
    }
}
