// SPDX-License-Identifier: Apache-2.0
// Reads what the push service of a browser got: decrypts the message with http_ece, and checks the signature of the sender.
const crypto = require("crypto");
const path = require("path");
const ece = require(path.join(process.argv[2], "http_ece"));

let input = "";
process.stdin.on("data", part => input += part).on("end", () => {
  const { body, key, secret, authorization } = JSON.parse(input);
  const own = crypto.createECDH("prime256v1");
  own.setPrivateKey(Buffer.from(key, "base64"));
  const text = ece.decrypt(Buffer.from(body, "base64"), { version: "aes128gcm", privateKey: own, authSecret: secret });

  const [, token, point] = /^vapid t=([^,]+), k=([^,]+)$/.exec(authorization);
  const [head, claims, signature] = token.split(".");
  const raw = Buffer.from(point, "base64url");
  if (raw.length !== 65 || raw[0] !== 4) throw new Error("k is no uncompressed point");
  const jwk = { kty: "EC", crv: "P-256", x: raw.subarray(1, 33).toString("base64url"), y: raw.subarray(33).toString("base64url") };
  const right = crypto.verify("sha256", Buffer.from(head + "." + claims), {
    key: crypto.createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363",
  }, Buffer.from(signature, "base64url"));
  if (!right) throw new Error("the signature of the token is wrong");
  const read = part => JSON.parse(Buffer.from(part, "base64url").toString());
  process.stdout.write(JSON.stringify({ text: text.toString(), head: read(head), claims: read(claims), key: point }));
});
