// Package contract tests the contract sentence by sentence, from outside: over HTTP as consumers
// call it, and with hubs over MQTT and TLS. Each test quotes the sentence that it tests, or names
// the section of the design where the contract is silent.
//
// The suite starts the built binary three times: with the contract's limits, with limits short
// enough to wait for, and to kill it. To test a running service instead, set HUBCLOUD_TEST_URL and
// HUBCLOUD_TEST_KEY, and also HUBCLOUD_TEST_OTHER_KEY (a key of a second organization) and
// HUBCLOUD_TEST_HUBS (a file of unused hubs). Tests that are not possible there are skipped as NOT
// TRIED (see with -v).
package contract
