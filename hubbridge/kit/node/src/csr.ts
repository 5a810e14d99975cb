import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Returns a new private key on P-256 and a certificate request for it, as PEM. OpenSSL makes both: Node makes no requests. */
export async function certificateRequest(): Promise<{ key: string; csr: string }> {
  const { stdout } = await promisify(execFile)("openssl", [
    "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "-", "-subj", "/CN=hub",
  ]);
  const at = stdout.indexOf("-----BEGIN CERTIFICATE REQUEST-----");
  return { key: stdout.slice(0, at), csr: stdout.slice(at) };
}
