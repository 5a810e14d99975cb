// Package webhook posts events to an HTTP service, the receiver, as Standard Webhooks defines it
// (https://www.standardwebhooks.com): a message has an id, which stays the same when the message is
// posted again, and a signature for each secret. What is posted in which order, and when again, is
// up to the caller.
package webhook
