// SPDX-License-Identifier: Apache-2.0

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import javax.security.auth.x500.X500Principal;

/**
 * Judges whether texts stand for the issuer and the serial number of certificates. Arguments come in threes: files
 * with a certificate, a name and a number. One line for each three: OK or FAIL and why, a tab, and the issuer as Java
 * writes it in Base64.
 */
public class NameJudge {
    static String judge(Path file, String name, String number) {
        try {
            X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(Files.newInputStream(file));
            X500Principal issuer = certificate.getIssuerX500Principal();
            String own = "\t" + Base64.getEncoder().encodeToString(issuer.getName(X500Principal.RFC2253).getBytes(StandardCharsets.UTF_8));
            X500Principal read;
            try {
                read = new X500Principal(name);
            } catch (IllegalArgumentException e) {
                return "FAIL the name is not read: " + e.getMessage().replaceAll("\\s+", " ") + own;
            }
            if (!read.equals(issuer)) {
                return "FAIL the name is read as " + read.getName(X500Principal.RFC2253).replaceAll("\\s+", " ") + own;
            }
            if (!new BigInteger(number).equals(certificate.getSerialNumber())) {
                return "FAIL the serial number is " + certificate.getSerialNumber() + own;
            }
            return "OK" + own;
        } catch (Exception e) {
            return "FAIL " + e.toString().replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] args) throws Exception {
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (int i = 0; i + 2 < args.length; i += 3) {
            out.println(judge(Path.of(args[i]), Files.readString(Path.of(args[i + 1])), Files.readString(Path.of(args[i + 2]))));
        }
    }
}
