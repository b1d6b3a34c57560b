// SPDX-License-Identifier: Apache-2.0

import com.itextpdf.text.BaseColor;
import com.itextpdf.text.pdf.PdfContentByte;
import com.itextpdf.text.pdf.PdfReader;
import com.itextpdf.text.pdf.PdfSignatureAppearance;
import com.itextpdf.text.pdf.PdfStamper;
import com.itextpdf.text.pdf.security.BouncyCastleDigest;
import com.itextpdf.text.pdf.security.MakeSignature;
import com.itextpdf.text.pdf.security.PrivateKeySignature;
import java.io.ByteArrayInputStream;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Calendar;
import java.util.List;
import java.util.TimeZone;
import org.apache.pdfbox.cos.COSDictionary;
import org.apache.pdfbox.cos.COSName;
import org.apache.pdfbox.pdmodel.PDDocument;
import org.apache.pdfbox.pdmodel.PDPage;
import org.apache.pdfbox.pdmodel.PDPageContentStream;
import org.apache.pdfbox.pdmodel.interactive.annotation.PDAnnotationWidget;
import org.apache.pdfbox.pdmodel.interactive.digitalsignature.PDSignature;
import org.apache.pdfbox.pdmodel.interactive.form.PDAcroForm;
import org.apache.pdfbox.pdmodel.interactive.form.PDField;
import org.bouncycastle.cert.jcajce.JcaCertStore;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSSignedDataGenerator;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;

/**
 * Adds revisions to documents with iText and PDFBox. The arguments are a directory with key.der (PKCS #8) and
 * chain.der (certificates, the signer's first), the time of signatures in milliseconds since 1970, the name of the text
 * field and its value; then for each document the program and the edit ("iText fill"), the input and the output. It
 * answers with a line for each, OK or FAIL and why.
 */
public class PDFEditors {
    static PrivateKey key;
    static Certificate[] chain;
    static Calendar time = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
    static String field, value;

    static void iText(String edit, String in, String out) throws Exception {
        PdfReader reader = new PdfReader(in);
        try (OutputStream file = new FileOutputStream(out)) {
            if (edit.equals("sign")) {
                PdfStamper stamper = PdfStamper.createSignature(reader, file, '\0', null, true);
                PdfSignatureAppearance signature = stamper.getSignatureAppearance();
                signature.setSignDate(time);
                signature.setReason("Approved");
                MakeSignature.signDetached(signature, new BouncyCastleDigest(), new PrivateKeySignature(key, "SHA-256", "BC"),
                    chain, null, null, null, 0, MakeSignature.CryptoStandard.CMS);
                return;
            }
            PdfStamper stamper = new PdfStamper(reader, file, '\0', true);
            if (edit.equals("fill")) {
                if (!stamper.getAcroFields().setField(field, value)) {
                    throw new Exception("the field was not set");
                }
            } else if (edit.equals("content")) {
                PdfContentByte over = stamper.getOverContent(1);
                over.setColorFill(BaseColor.BLACK);
                over.rectangle(72, 600, 200, 50);
                over.fill();
            } else {
                throw new Exception("unknown edit");
            }
            stamper.close();
        }
    }

    static byte[] cms(byte[] content) throws Exception {
        CMSSignedDataGenerator generator = new CMSSignedDataGenerator();
        generator.addSignerInfoGenerator(new JcaSignerInfoGeneratorBuilder(new JcaDigestCalculatorProviderBuilder().setProvider("BC").build())
            .build(new JcaContentSignerBuilder("SHA256withRSA").setProvider("BC").build(key), (X509Certificate) chain[0]));
        generator.addCertificates(new JcaCertStore(Arrays.asList(chain)));
        return generator.generate(new CMSProcessableByteArray(content), false).getEncoded();
    }

    static void pdfBox(String edit, String in, String out) throws Exception {
        try (PDDocument document = PDDocument.load(Paths.get(in).toFile()); OutputStream file = new FileOutputStream(out)) {
            COSDictionary catalog = document.getDocumentCatalog().getCOSObject();
            PDPage page = document.getPage(0);
            switch (edit) {
            case "sign":
                PDSignature signature = new PDSignature();
                signature.setFilter(PDSignature.FILTER_ADOBE_PPKLITE);
                signature.setSubFilter(PDSignature.SUBFILTER_ADBE_PKCS7_DETACHED);
                signature.setSignDate(time);
                document.addSignature(signature, content -> {
                    try {
                        return cms(content.readAllBytes());
                    } catch (Exception e) {
                        throw new java.io.IOException(e);
                    }
                });
                break;
            case "fill":
                PDAcroForm form = document.getDocumentCatalog().getAcroForm();
                PDField text = form.getField(field);
                text.setValue(value);
                catalog.setNeedToBeUpdated(true);
                form.getCOSObject().setNeedToBeUpdated(true);
                text.getCOSObject().setNeedToBeUpdated(true);
                for (PDAnnotationWidget widget : text.getWidgets()) {
                    widget.getCOSObject().setNeedToBeUpdated(true);
                    widget.getAppearance().getCOSObject().setNeedToBeUpdated(true);
                    widget.getAppearance().getNormalAppearance().getAppearanceStream().getCOSObject().setNeedToBeUpdated(true);
                }
                break;
            case "information":
                document.getDocumentInformation().setTitle("Another title");
                document.getDocumentInformation().getCOSObject().setNeedToBeUpdated(true);
                break;
            case "content":
                try (PDPageContentStream content = new PDPageContentStream(document, page, PDPageContentStream.AppendMode.APPEND, false)) {
                    content.addRect(72, 600, 200, 50);
                    content.fill();
                }
                page.getCOSObject().setNeedToBeUpdated(true);
                catalog.setNeedToBeUpdated(true);
                ((COSDictionary) catalog.getDictionaryObject(COSName.PAGES)).setNeedToBeUpdated(true);
                break;
            default:
                throw new Exception("unknown edit");
            }
            document.saveIncremental(file);
        }
    }

    public static void main(String[] args) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        Path dir = Paths.get(args[0]);
        key = KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Files.readAllBytes(dir.resolve("key.der"))));
        List<Certificate> list = new ArrayList<>(CertificateFactory.getInstance("X.509")
            .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(dir.resolve("chain.der")))));
        chain = list.toArray(new Certificate[0]);
        time.setTimeInMillis(Long.parseLong(args[1]));
        field = args[2];
        value = args[3];
        for (int i = 4; i + 2 < args.length; i += 3) {
            try {
                String[] what = args[i].split(" ");
                if (what[0].equals("iText")) {
                    iText(what[1], args[i + 1], args[i + 2]);
                } else {
                    pdfBox(what[1], args[i + 1], args[i + 2]);
                }
                System.out.println("OK");
            } catch (Throwable e) {
                System.out.println("FAIL " + e.toString().replaceAll("\\s+", " "));
            }
        }
    }
}
