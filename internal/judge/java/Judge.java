// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1EncodableVector;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.cms.Attribute;
import org.bouncycastle.asn1.cms.AttributeTable;
import org.bouncycastle.asn1.cms.ContentInfo;
import org.bouncycastle.asn1.esf.CrlOcspRef;
import org.bouncycastle.asn1.esf.RevocationValues;
import org.bouncycastle.asn1.ess.OtherCertID;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.rosstandart.RosstandartObjectIdentifiers;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.Certificate;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.operator.ContentVerifierProvider;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.tsp.TSPUtil;
import org.bouncycastle.tsp.TimeStampToken;
import org.bouncycastle.tsp.TimeStampTokenInfo;

/**
 * Judges signatures with Bouncy Castle. One question is a line of fields separated by tabs, every
 * field but the first a path ("-" for none); one answer is a line, "OK" or "FAIL reason".
 *
 * cms  MESSAGE  CONTENT  CA     a signed message, with its content when it is detached
 * cades MESSAGE CONTENT CA COUNTS  the same with every countersignature and every time stamp of a
 *                               signature; COUNTS is how many of each there are: "signers,counters,stamps"
 * raw  CERTIFICATE  DATA  VALUE a bare signature over data
 * cert CERTIFICATE  CA          a certificate (DER) with a path to a root among the authorities (PEM)
 */
public class Judge {
    public static void main(String[] args) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println("READY");
        for (String line; (line = in.readLine()) != null; ) {
            try {
                judge(line.split("\t", -1));
                out.println("OK");
            } catch (Throwable e) {
                out.println("FAIL " + e.toString().replaceAll("\\s+", " "));
            }
        }
    }

    static void judge(String[] q) throws Exception {
        switch (q[0]) {
            case "cms":
                cms(q[1], q[2], q[3]);
                break;
            case "cades":
                cades(q[1], q[2], q[3], q[4]);
                break;
            case "raw":
                raw(q[1], q[2], q[3]);
                break;
            case "cert":
                issued(holder(q[1]), q[2]);
                break;
            default:
                throw new IllegalArgumentException("no such question: " + q[0]);
        }
    }

    static CMSSignedData signed(String message, String content) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(message));
        return content.equals("-")
            ? new CMSSignedData(bytes)
            : new CMSSignedData(new CMSProcessableByteArray(Files.readAllBytes(Path.of(content))), bytes);
    }

    static void cms(String message, String content, String ca) throws Exception {
        CMSSignedData signed = signed(message, content);
        Collection<SignerInformation> signers = signed.getSignerInfos().getSigners();
        if (signers.isEmpty()) {
            throw new Exception("no signer");
        }
        for (SignerInformation signer : signers) {
            verified(signer, signed, ca);
        }
    }

    /** How many signatures of each kind were verified. */
    static class Counts {
        int signers, counters, stamps;

        public String toString() {
            return signers + "," + counters + "," + stamps;
        }
    }

    static void cades(String message, String content, String ca, String expected) throws Exception {
        CMSSignedData signed = signed(message, content);
        Counts counts = new Counts();
        for (SignerInformation signer : signed.getSignerInfos().getSigners()) {
            counts.signers++;
            signature(signer, signed, ca, counts);
        }
        if (!counts.toString().equals(expected)) {
            throw new Exception("signers, countersignatures and time stamps are " + counts + ", not " + expected);
        }
    }

    /** One signature with its time stamps, and the countersignatures on it. */
    static void signature(SignerInformation signer, CMSSignedData signed, String ca, Counts counts) throws Exception {
        verified(signer, signed, ca);
        AttributeTable table = signer.getUnsignedAttributes();
        if (table == null) {
            return;
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_signatureTimeStampToken)) {
            stamp((Attribute) one, signer.getSignature(), ca, counts);
        }
        // RFC 5126, 6.3.5: the value, then type and values of each attribute.
        ByteArrayOutputStream covered = new ByteArrayOutputStream();
        covered.write(signer.getSignature());
        for (ASN1ObjectIdentifier type : new ASN1ObjectIdentifier[] {
                PKCSObjectIdentifiers.id_aa_signatureTimeStampToken, PKCSObjectIdentifiers.id_aa_ets_certificateRefs,
                PKCSObjectIdentifiers.id_aa_ets_revocationRefs}) {
            for (ASN1Encodable one : list(table, type)) {
                covered.write(((Attribute) one).getAttrType().getEncoded());
                covered.write(((Attribute) one).getAttrValues().getEncoded());
            }
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_ets_escTimeStamp)) {
            stamp((Attribute) one, covered.toByteArray(), ca, counts);
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_ets_certValues)) {
            for (ASN1Encodable c : ASN1Sequence.getInstance(((Attribute) one).getAttributeValues()[0])) {
                Certificate.getInstance(c);
            }
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_ets_revocationValues)) {
            RevocationValues values = RevocationValues.getInstance(((Attribute) one).getAttributeValues()[0]);
            if (values.getOcspVals().length + values.getCrlVals().length == 0) {
                throw new Exception("revocation-values is empty");
            }
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_ets_certificateRefs)) {
            for (ASN1Encodable r : ASN1Sequence.getInstance(((Attribute) one).getAttributeValues()[0])) {
                OtherCertID.getInstance(r);
            }
        }
        for (ASN1Encodable one : list(table, PKCSObjectIdentifiers.id_aa_ets_revocationRefs)) {
            for (ASN1Encodable r : ASN1Sequence.getInstance(((Attribute) one).getAttributeValues()[0])) {
                CrlOcspRef.getInstance(r);
            }
        }
        for (SignerInformation counter : signer.getCounterSignatures().getSigners()) {
            counts.counters++;
            signature(counter, signed, ca, counts);
        }
    }

    static List<ASN1Encodable> list(AttributeTable table, ASN1ObjectIdentifier type) {
        ASN1EncodableVector found = table.getAll(type);
        List<ASN1Encodable> out = new ArrayList<>();
        for (int i = 0; i < found.size(); i++) {
            out.add(found.get(i));
        }
        return out;
    }

    /** The certificate of a signer, once its signature and its path are verified. */
    static X509CertificateHolder verified(SignerInformation signer, CMSSignedData in, String ca) throws Exception {
        Collection<?> found = in.getCertificates().getMatches(signer.getSID());
        if (found.isEmpty()) {
            throw new Exception("the signer's certificate is not in the message");
        }
        X509CertificateHolder certificate = (X509CertificateHolder) found.iterator().next();
        if (!signer.verify(new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC").build(key(certificate)))) {
            throw new Exception("the signature does not verify");
        }
        issued(certificate, ca);
        return certificate;
    }

    static void stamp(Attribute attribute, byte[] covered, String ca, Counts counts) throws Exception {
        for (ASN1Encodable value : attribute.getAttributeValues()) {
            counts.stamps++;
            CMSSignedData data = new CMSSignedData(ContentInfo.getInstance(value));
            TimeStampToken token = new TimeStampToken(data); // one signer, TSTInfo, signing-certificate
            TimeStampTokenInfo info = token.getTimeStampInfo();
            MessageDigest digest = MessageDigest.getInstance(info.getMessageImprintAlgOID().getId(), "BC");
            if (!Arrays.equals(digest.digest(covered), info.getMessageImprintDigest())) {
                throw new Exception("the imprint of a time stamp is another");
            }
            X509CertificateHolder certificate = verified(data.getSignerInfos().getSigners().iterator().next(), data, ca);
            TSPUtil.validateCertificate(certificate);
        }
    }

    static void raw(String certificate, String data, String value) throws Exception {
        X509CertificateHolder holder = holder(certificate);
        Signature verifier = Signature.getInstance(algorithm(holder), "BC");
        verifier.initVerify(key(holder));
        verifier.update(Files.readAllBytes(Path.of(data)));
        if (!verifier.verify(Files.readAllBytes(Path.of(value)))) {
            throw new Exception("the signature does not verify");
        }
    }

    /**
     * The key of a certificate. Version 1.72 expects two identifiers in the parameters of a GOST key and
     * fails on those of RFC 9215, which leave the digest out for the sets of TC26: it is put in here.
     */
    static PublicKey key(X509CertificateHolder certificate) throws Exception {
        SubjectPublicKeyInfo info = certificate.getSubjectPublicKeyInfo();
        ASN1ObjectIdentifier algorithm = info.getAlgorithm().getAlgorithm();
        ASN1ObjectIdentifier digest =
            algorithm.equals(RosstandartObjectIdentifiers.id_tc26_gost_3410_12_256) ? RosstandartObjectIdentifiers.id_tc26_gost_3411_12_256
            : algorithm.equals(RosstandartObjectIdentifiers.id_tc26_gost_3410_12_512) ? RosstandartObjectIdentifiers.id_tc26_gost_3411_12_512
            : null;
        if (digest != null) {
            ASN1Sequence parameters = ASN1Sequence.getInstance(info.getAlgorithm().getParameters());
            if (parameters.size() == 1) {
                AlgorithmIdentifier full = new AlgorithmIdentifier(algorithm,
                    new DERSequence(new ASN1Encodable[] {parameters.getObjectAt(0), digest}));
                info = new SubjectPublicKeyInfo(full, info.getPublicKeyData().getBytes());
            }
        }
        return new JcaPEMKeyConverter().setProvider("BC").getPublicKey(info);
    }

    static String algorithm(X509CertificateHolder certificate) {
        String key = certificate.getSubjectPublicKeyInfo().getAlgorithm().getAlgorithm().getId();
        switch (key) {
            case "1.2.643.2.2.19":
                return "GOST3411WITHECGOST3410";
            case "1.2.643.7.1.1.1.1":
                return "GOST3411-2012-256WITHECGOST3410-2012-256";
            case "1.2.643.7.1.1.1.2":
                return "GOST3411-2012-512WITHECGOST3410-2012-512";
            case "1.2.840.113549.1.1.1":
                return "SHA256WITHRSA";
            case "1.2.840.10045.2.1":
                return "SHA256WITHECDSA";
            default:
                throw new IllegalArgumentException("no signature algorithm for keys of " + key);
        }
    }

    static X509CertificateHolder holder(String path) throws Exception {
        return new X509CertificateHolder(Files.readAllBytes(Path.of(path)));
    }

    /** Follows the issuers among the authorities up to a self-signed one. */
    static void issued(X509CertificateHolder certificate, String ca) throws Exception {
        List<X509CertificateHolder> authorities = new ArrayList<>();
        try (PEMParser parser = new PEMParser(new FileReader(ca))) {
            for (Object o; (o = parser.readObject()) != null; ) {
                authorities.add((X509CertificateHolder) o);
            }
        }
        for (int depth = 0; depth < 5; depth++) {
            X509CertificateHolder issuer = null;
            for (X509CertificateHolder a : authorities) {
                if (certificate.getIssuer().equals(a.getSubject())) {
                    issuer = a;
                }
            }
            if (issuer == null) {
                throw new Exception("the certificate is of another issuer");
            }
            ContentVerifierProvider verifier = new JcaContentVerifierProviderBuilder().setProvider("BC").build(key(issuer));
            if (!certificate.isSignatureValid(verifier)) {
                throw new Exception("the signature of the certificate does not verify");
            }
            if (issuer.getSubject().equals(issuer.getIssuer())) {
                return;
            }
            certificate = issuer;
        }
        throw new Exception("the path has no end");
    }
}
