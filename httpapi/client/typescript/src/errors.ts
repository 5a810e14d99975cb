import type { components } from "./api.js";

/** The types of errors of the API, on which programs branch. */
export type ErrorType = components["schemas"]["ErrorType"];

/** An error that the API answered. */
export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    /** The type, on which programs branch. */
    readonly type: ErrorType,
    /** The status of the answer. */
    readonly status: number,
    message: string,
    /** Identifies the request to support. */
    readonly requestId: string,
    /** The seconds until the time of the header Retry-After, if the answer has it. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

/** There was no answer, or only part of one: the service may have acted. `cause` is the reason. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

/** An answer that does not come from the API, such as the page of a proxy. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}

/** The events after a cursor are gone: call `Client.resync`, then follow from its cursor. `cause` is the error of the API. */
export class ResyncError extends Error {
  override name = "ResyncError";
}

/** Reports whether the contract says to retry an error of the API. */
export function isRepeatable(status: number): boolean {
  return [429, 500, 502, 503, 504].includes(status);
}

/** Returns the error of an answer whose status is not a success. */
export async function errorOf(response: Response): Promise<Error> {
  const text = await response.text();
  let error: Partial<components["schemas"]["Error"]["error"]> | undefined;
  try {
    error = JSON.parse(text)?.error;
  } catch {
    // not the API's
  }
  const retryAfter = secondsUntil(response.headers.get("Retry-After") ?? "");
  if (typeof error?.type !== "string") {
    if (isRepeatable(response.status)) { // a proxy's answer while the service restarts
      return new ApiError("internal_error", response.status, `status ${response.status} without an error of the API`, "", retryAfter);
    }
    return new ProtocolError(`status ${response.status} without an error of the API: ${text.slice(0, 200)}`);
  }
  return new ApiError(error.type, response.status, error.message ?? "", error.request_id ?? "", retryAfter);
}

/** Returns the seconds of a header Retry-After, which has seconds or a date (RFC 9110, section 10.2.3); undefined for none ahead. */
function secondsUntil(value: string): number | undefined {
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(seconds, 86_400) : undefined; // no call waits longer anyway
}
