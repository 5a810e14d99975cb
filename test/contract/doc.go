// Package contract holds the service to its contract, sentence by sentence, from outside: over HTTP
// as consumers call it, and with hubs over MQTT and TLS. Each test quotes the sentence that it
// holds; where the contract is silent and the design says something, it says so.
//
// It starts the built binary, once with the contract's own limits, once with limits short enough to
// be waited for, and once to kill it. It tries any other service when HUBCLOUD_TEST_URL and
// HUBCLOUD_TEST_KEY name one, with HUBCLOUD_TEST_OTHER_KEY of a second organization and
// HUBCLOUD_TEST_HUBS, a file of hubs that nobody has used yet; what cannot be tried there is
// skipped as NOT TRIED (see with -v).
package contract
