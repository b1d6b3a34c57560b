// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.MGF1ParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import javax.crypto.spec.OAEPParameterSpec;
import javax.crypto.spec.PSource;

import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1EncodableVector;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1Sequence;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.DERSet;
import org.bouncycastle.asn1.cms.Attribute;
import org.bouncycastle.asn1.cms.AttributeTable;
import org.bouncycastle.asn1.cms.CMSAttributes;
import org.bouncycastle.asn1.cms.CMSObjectIdentifiers;
import org.bouncycastle.asn1.cms.ContentInfo;
import org.bouncycastle.asn1.esf.CrlOcspRef;
import org.bouncycastle.asn1.esf.RevocationValues;
import org.bouncycastle.asn1.ess.OtherCertID;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.asn1.rosstandart.RosstandartObjectIdentifiers;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.Certificate;
import org.bouncycastle.asn1.x509.SubjectKeyIdentifier;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cms.CMSAlgorithm;
import org.bouncycastle.cms.CMSAuthEnvelopedData;
import org.bouncycastle.cms.CMSAuthEnvelopedDataGenerator;
import org.bouncycastle.cms.CMSEnvelopedData;
import org.bouncycastle.cms.CMSEnvelopedDataGenerator;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.KeyAgreeRecipientInformation;
import org.bouncycastle.cms.Recipient;
import org.bouncycastle.cms.RecipientInfoGenerator;
import org.bouncycastle.cms.RecipientInformation;
import org.bouncycastle.cms.RecipientInformationStore;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.SimpleAttributeTableGenerator;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.cms.jcajce.JceCMSContentEncryptorBuilder;
import org.bouncycastle.cms.jcajce.JceKeyAgreeEnvelopedRecipient;
import org.bouncycastle.cms.jcajce.JceKeyAgreeRecipientInfoGenerator;
import org.bouncycastle.cms.jcajce.JceKeyTransAuthEnvelopedRecipient;
import org.bouncycastle.cms.jcajce.JceKeyTransEnvelopedRecipient;
import org.bouncycastle.cms.jcajce.JceKeyTransRecipientInfoGenerator;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.operator.ContentVerifierProvider;
import org.bouncycastle.operator.OutputAEADEncryptor;
import org.bouncycastle.operator.OutputEncryptor;
import org.bouncycastle.operator.jcajce.JcaAlgorithmParametersConverter;
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
 * decrypt MESSAGE KEY TEXT      an encrypted message with the key of its recipient (PKCS #8), to TEXT
 * encrypt FORM CERTIFICATE TEXT MESSAGE  encrypts TEXT for a certificate, named by its key identifier;
 *                               FORM is "transport CIPHER", "oaep CIPHER" or "agreement CIPHER"
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
            case "decrypt":
                decrypt(q[1], q[2], q[3]);
                break;
            case "encrypt":
                encrypt(q[1], q[2], q[3], q[4]);
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

    static void decrypt(String message, String pkcs8, String text) throws Exception {
        PrivateKey key = new JcaPEMKeyConverter().setProvider("BC")
            .getPrivateKey(PrivateKeyInfo.getInstance(Files.readAllBytes(Path.of(pkcs8))));
        byte[] bytes = Files.readAllBytes(Path.of(message));
        boolean authenticated = ContentInfo.getInstance(bytes).getContentType().equals(CMSObjectIdentifiers.authEnvelopedData);
        RecipientInformationStore recipients = authenticated
            ? new CMSAuthEnvelopedData(bytes).getRecipientInfos()
            : new CMSEnvelopedData(bytes).getRecipientInfos();
        RecipientInformation first = recipients.getRecipients().iterator().next();
        Recipient recipient = first instanceof KeyAgreeRecipientInformation ? new JceKeyAgreeEnvelopedRecipient(key).setProvider("BC")
            : authenticated ? new JceKeyTransAuthEnvelopedRecipient(key).setProvider("BC")
            : new JceKeyTransEnvelopedRecipient(key).setProvider("BC");
        Files.write(Path.of(text), first.getContent(recipient));
    }

    static void encrypt(String form, String certificate, String text, String message) throws Exception {
        X509CertificateHolder holder = holder(certificate);
        PublicKey key = key(holder);
        byte[] id = SubjectKeyIdentifier.fromExtensions(holder.getExtensions()).getKeyIdentifier();
        String[] parts = form.split(" ");
        RecipientInfoGenerator recipient;
        switch (parts[0]) {
            case "transport":
                recipient = new JceKeyTransRecipientInfoGenerator(id, key).setProvider("BC");
                break;
            case "oaep":
                AlgorithmIdentifier oaep = new JcaAlgorithmParametersConverter().getAlgorithmIdentifier(PKCSObjectIdentifiers.id_RSAES_OAEP,
                    new OAEPParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, PSource.PSpecified.DEFAULT));
                recipient = new JceKeyTransRecipientInfoGenerator(id, oaep, key).setProvider("BC");
                break;
            default:
                KeyPairGenerator pairs = KeyPairGenerator.getInstance(key.getAlgorithm(), "BC");
                pairs.initialize(((ECPublicKey) key).getParams());
                KeyPair sender = pairs.generateKeyPair();
                boolean old = key.getAlgorithm().equals("ECGOST3410"), gost = key.getAlgorithm().startsWith("ECGOST");
                int bits = ((ECPublicKey) key).getParams().getOrder().bitLength();
                ASN1ObjectIdentifier agreement = !gost ? CMSAlgorithm.ECDH_SHA256KDF : old ? CMSAlgorithm.ECDHGOST3410_2001
                    : bits > 256 ? CMSAlgorithm.ECDHGOST3410_2012_512 : CMSAlgorithm.ECDHGOST3410_2012_256;
                JceKeyAgreeRecipientInfoGenerator agreed = new JceKeyAgreeRecipientInfoGenerator(agreement, sender.getPrivate(), sender.getPublic(),
                    gost ? CMSAlgorithm.GOST28147_CRYPTOPRO_WRAP : CMSAlgorithm.AES256_WRAP);
                if (gost) {
                    agreed.setUserKeyingMaterial(Arrays.copyOf(id, 8)); // Bouncy Castle draws none
                }
                recipient = agreed.addRecipient(id, key).setProvider("BC");
        }
        ASN1ObjectIdentifier cipher = parts[1].equals("28147-89") ? CMSAlgorithm.GOST28147_GCFB
            : parts[1].equals("AES256-CBC") ? CMSAlgorithm.AES256_CBC : CMSAlgorithm.AES256_GCM;
        OutputEncryptor encryptor = new JceCMSContentEncryptorBuilder(cipher).setProvider("BC").build();
        byte[] content = Files.readAllBytes(Path.of(text)), out;
        if (cipher.equals(CMSAlgorithm.AES256_GCM)) {
            CMSAuthEnvelopedDataGenerator generator = new CMSAuthEnvelopedDataGenerator();
            generator.addRecipientInfoGenerator(recipient);
            // Attributes that the code covers as well.
            generator.setAuthenticatedAttributeGenerator(new SimpleAttributeTableGenerator(new AttributeTable(
                new Attribute(CMSAttributes.contentType, new DERSet(CMSObjectIdentifiers.data)))));
            out = generator.generate(new CMSProcessableByteArray(content), (OutputAEADEncryptor) encryptor).getEncoded();
        } else {
            CMSEnvelopedDataGenerator generator = new CMSEnvelopedDataGenerator();
            generator.addRecipientInfoGenerator(recipient);
            out = generator.generate(new CMSProcessableByteArray(content), encryptor).getEncoded();
        }
        Files.write(Path.of(message), out);
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
