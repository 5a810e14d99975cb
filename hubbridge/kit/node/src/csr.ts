import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";

/** Returns one DER element: its tag, its length and its contents. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length < 128 ? [body.length]
    : body.length < 256 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
const COMMON_NAME = oid("550403");
const ECDSA_WITH_SHA256 = der(0x30, oid("2a8648ce3d040302"));

/** Returns a new private key on P-256, as PEM. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Returns a certificate request (PKCS#10) for a key of newKey, as PEM. */
export function certificateRequest(keyPem: string): string {
  const key = createPrivateKey(keyPem);
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const name = der(0x30, der(0x31, der(0x30, COMMON_NAME, der(0x0c, Buffer.from("hub")))));
  const info = der(0x30, der(0x02, Buffer.from([0])), name, publicKey, der(0xa0));
  const signature = der(0x03, Buffer.from([0]), sign("sha256", info, key));
  const text = der(0x30, info, ECDSA_WITH_SHA256, signature).toString("base64");
  const lines = text.match(/.{1,64}/g)?.join("\n");
  return `-----BEGIN CERTIFICATE REQUEST-----\n${lines}\n-----END CERTIFICATE REQUEST-----\n`;
}
