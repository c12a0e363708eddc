#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "einmal/fingerprint/content_coding.hpp"
#include "einmal/fingerprint/requests_in_tests.hpp"

namespace einmal {
namespace {

std::string deflated(const std::string& data, int level, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
std::string gzipped(const std::string& data, int level = 6) {
  return deflated(data, level, 15 + 16);
}

std::string zstandard(const std::string& data, int level = 3) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), level));
  return out;
}

SampleRequest coded(const std::string& coding, std::string body) {
  return json(std::move(body)).with("Content-Encoding", coding);
}

/// Noise that does not compress, the same every time.
std::string noise(std::size_t size) {
  std::string out;
  std::uint32_t state = 1;
  while (out.size() < size) {
    state = state * 1664525 + 1013904223;
    out.push_back(static_cast<char>(state >> 24));
  }
  return out;
}

// Field report C08: the retry of an upload.
TEST(CodedBody, IsComparedDecodedWhateverCodingAndLevelWereUsed) {
  const std::string text = R"({"amount": 5, "to": "X", "note": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})";
  const SampleRequest plain = json(text);
  for (const int level : {1, 9}) {
    EXPECT_TRUE(same(plain, coded("gzip", gzipped(text, level))));
    EXPECT_TRUE(same(plain, coded("deflate", deflated(text, level, 15))));
    EXPECT_TRUE(same(plain, coded("deflate", deflated(text, level, -15))));
    EXPECT_TRUE(same(plain, coded("zstd", zstandard(text, level))));
  }
  EXPECT_TRUE(same(plain, coded("GZip", gzipped(" " + text))));
  EXPECT_TRUE(same(plain, coded("x-gzip", gzipped(text))));
  EXPECT_TRUE(same(plain, coded("identity", text)));
  EXPECT_TRUE(same(plain, coded("", text)));
  EXPECT_TRUE(same(plain, coded("zstd, gzip", gzipped(zstandard(text)))));
  EXPECT_TRUE(
      same(plain, coded("zstd", gzipped(zstandard(text))).with("Content-Encoding", "gzip")));
  EXPECT_TRUE(same(plain, coded("gzip", gzipped(text.substr(0, 9)) + gzipped(text.substr(9)))));
  EXPECT_TRUE(same(plain, coded("zstd", zstandard(text.substr(0, 9)) + zstandard(text.substr(9)))));
  EXPECT_TRUE(differ(plain, coded("gzip", gzipped(R"({"amount": 6})"))));
  EXPECT_TRUE(is_unusable(coded("gzip", gzipped("{\"a\":1,\"a\":1}"))));
}

TEST(CodedBody, ThatIsNotUnderstoodIsComparedAsBytesWithTheNameOfTheCoding) {
  const std::string text = "{\"a\":1}";
  const std::string good = gzipped(text);
  EXPECT_TRUE(same(coded("br", text), coded("BR", text)));
  EXPECT_TRUE(differ(coded("br", text), json(text)));
  EXPECT_TRUE(differ(coded("br", text), coded("compress", text)));
  EXPECT_TRUE(differ(coded("br", text), coded("br", text + " ")));
  EXPECT_TRUE(differ(coded("br, gzip", good), coded("br", text)));
  for (const std::string& broken :
       {std::string(), text, good.substr(0, good.size() - 1), good + "x", good.substr(1)}) {
    EXPECT_TRUE(same(coded("gzip", broken), coded("gzip", broken)));
    EXPECT_TRUE(differ(coded("gzip", broken), json(text)));
    EXPECT_TRUE(differ(coded("gzip", broken), json(broken.empty() ? "null" : broken)));
  }
  const std::string frame = zstandard(text);
  for (const std::string& broken :
       {std::string(), text, frame.substr(0, frame.size() - 1), frame + "x"}) {
    EXPECT_TRUE(same(coded("zstd", broken), coded("zstd", broken)));
    EXPECT_TRUE(differ(coded("zstd", broken), json(text)));
  }
  const std::string zlib = deflated(text, 6, 15), bare = deflated(text, 6, -15);
  for (const std::string& broken : {zlib + "x", bare + "x", zlib.substr(0, zlib.size() - 1)}) {
    EXPECT_TRUE(differ(coded("deflate", broken), json(text)));
  }
  EXPECT_TRUE(
      differ(coded("deflate", deflated("{\"a\"", 6, 15) + deflated(":1}", 6, 15)), json(text)));
  std::string five = text;
  for (int i = 0; i < 5; ++i) five = gzipped(five);
  EXPECT_TRUE(differ(coded("gzip,gzip,gzip,gzip,gzip", five), json(text)));
}

TEST(CodedBody, IsBoundedAgainstBombsExactlyAtTheLimit) {
  FingerprintOptions options;
  options.max_decoded_body = 100'000;
  const std::string fits = "\"" + std::string(99'998, 'a') + "\"";
  const std::string beyond = "\"" + std::string(99'999, 'a') + "\"";
  for (const auto& [coding, code] :
       {std::pair<const char*, std::string (*)(const std::string&)>{
            "gzip", [](const std::string& s) { return gzipped(s); }},
        {"deflate", [](const std::string& s) { return deflated(s, 6, 15); }},
        {"zstd", [](const std::string& s) { return zstandard(s); }}}) {
    EXPECT_TRUE(same(coded(coding, code(fits)), json(fits), options)) << coding;
    EXPECT_EQ(print_of(coded(coding, code(beyond)), options),
              "unusable: Content-Encoding: the body decodes to more than 100000 bytes")
        << coding;
  }
  // An inner stage counts as well: small, then large, then small.
  const std::string inner = gzipped(gzipped(std::string(10'000'000, '0')));
  EXPECT_TRUE(is_unusable(coded("gzip, gzip", inner), options));
}

TEST(CodedBody, OfManyChunksIsDecodedWhole) {
  for (const std::size_t size : {16383u, 16384u, 16385u, 32768u, 300'000u}) {
    const std::string data = noise(size);
    const SampleRequest plain = sent("application/octet-stream", data);
    const auto with = [&](const char* coding, std::string body) {
      return sent("application/octet-stream", std::move(body)).with("Content-Encoding", coding);
    };
    EXPECT_TRUE(same(plain, with("gzip", gzipped(data)))) << size;
    EXPECT_TRUE(same(plain, with("zstd", zstandard(data)))) << size;
    const std::string zeros(size, '\0');
    EXPECT_TRUE(same(sent("application/octet-stream", zeros), with("zstd", zstandard(zeros))))
        << size;
    EXPECT_TRUE(same(sent("application/octet-stream", zeros), with("gzip", gzipped(zeros))))
        << size;
  }
}

TEST(CodedBody, WithAWindowBeyondTheLimitOfHttpIsComparedAsBytes) {
  std::string out(ZSTD_compressBound(20'000'000), '\0');
  const std::string data(20'000'000, 'a');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 24);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ZSTD_inBuffer in{data.data(), data.size(), 0};
  ZSTD_outBuffer made{out.data(), out.size(), 0};
  while (ZSTD_compressStream2(context, &made, &in, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  out.resize(made.pos);
  Bytes decoded;
  EXPECT_EQ(decode_body({"zstd"}, out, 1 << 30, decoded), Decoding::as_sent);
}

struct Upload {
  std::string boundary = "b1";
  std::string name = "file", filename = "scan.pdf", type = "application/pdf";
  std::string content;
  std::string field = "invoice";

  SampleRequest request() const {
    const std::string line = "--" + boundary;
    return sent("multipart/form-data; boundary=" + boundary,
                line + "\r\nContent-Disposition: form-data; name=\"kind\"\r\n\r\n" + field +
                    "\r\n" + line + "\r\nContent-Disposition: form-data; name=\"" + name +
                    "\"; filename=\"" + filename + "\"\r\nContent-Type: " + type + "\r\n\r\n" +
                    content + "\r\n" + line + "--\r\n");
  }
};

TEST(MultipartBody, DoesNotDependOnTheBoundary) {
  Upload first;
  first.content = noise(300'000);
  Upload retry = first;
  retry.boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW";
  EXPECT_TRUE(same(first.request(), retry.request()));
  const auto changed = [&](auto change) {
    Upload other = retry;
    change(other);
    return other.request();
  };
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.content[150'000] ^= 1; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.filename = "scan2.pdf"; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.name = "file2"; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.type = "image/png"; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.field = "receipt"; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.content += "\r\n"; })));
  EXPECT_TRUE(differ(first.request(), changed([](auto& u) { u.content.clear(); })));
}

TEST(MultipartBody, MayContainTextThatLooksLikeTheBoundary) {
  Upload first;
  first.content =
      "\r\n--b1x\r\n--b1-\r\n--b\r\n--b1 --\r\n--b1--x\r\n -- b1\r\n--b1\nContent-Disposition: "
      "x\r\n\r\n--B1\r\n";
  Upload retry = first;
  retry.boundary = "other";
  EXPECT_TRUE(same(first.request(), retry.request()));
  Upload changed = first;
  changed.content.replace(changed.content.find("--b1x"), 5, "--b1y");
  EXPECT_TRUE(differ(first.request(), changed.request()));
}

SampleRequest parts(const std::string& body, const std::string& boundary = "b") {
  return sent("multipart/form-data; boundary=" + boundary, body);
}

TEST(MultipartBody, IgnoresPreambleEpilogueQuotingAndHeaderSpelling) {
  const SampleRequest plain =
      parts("--b\r\nContent-Disposition: form-data; name=\"a\"\r\nX-Part: 1\r\n\r\nv\r\n--b--\r\n");
  EXPECT_TRUE(
      same(plain, parts("junk\r\n--b \t\r\nx-part:1\r\nContent-Length: 1\r\nCONTENT-DISPOSITION:"
                        "Form-Data;NAME=a\r\n\r\nv\r\n--b--\t\r\nepilogue")));
  EXPECT_TRUE(
      same(plain,
           parts("--q q\r\nContent-Disposition: form-data; name=a\r\nX-Part: 1\r\n\r\nv\r\n--q q--",
                 "\"q q\"")));
  EXPECT_TRUE(differ(
      plain,
      parts(
          "--b\r\nContent-Disposition: form-data; name=\"a\"\r\nX-Part: 2\r\n\r\nv\r\n--b--\r\n")));
}

TEST(MultipartBody, KeepsTheOrderAndTheNumberOfParts) {
  const std::string a = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
  const std::string c = "--b\r\nContent-Disposition: form-data; name=c\r\n\r\n2\r\n";
  EXPECT_TRUE(differ(parts(a + c + "--b--"), parts(c + a + "--b--")));
  EXPECT_TRUE(differ(parts(a + "--b--"), parts(a + a + "--b--")));
  EXPECT_TRUE(differ(parts("--b--"), parts(a + "--b--")));
  EXPECT_TRUE(differ(parts("--b\r\n\r\n\r\n--b--"), parts("--b--")));
}

TEST(MultipartBody, KeepsTheOrderOfRepeatedHeaderLinesOfAPart) {
  std::string lines, swapped;
  for (int i = 0; i < 40; ++i) {
    lines += "X-" + std::string(i % 2 == 0 ? "A" : "B") + ": " + std::to_string(i) + "\r\n";
    if (i % 2 == 0) swapped += "X-A: " + std::to_string(i) + "\r\n";
  }
  for (int i = 1; i < 40; i += 2) swapped.insert(0, "x-b: " + std::to_string(40 - i) + "\r\n");
  const auto part = [](const std::string& head) {
    return parts("--b\r\n" + head + "\r\n1\r\n--b--");
  };
  EXPECT_TRUE(same(part(lines), part(swapped)));
  std::string other = lines;
  std::swap(other[other.find("X-A: 2") + 5], other[other.find("X-A: 4") + 5]);
  EXPECT_TRUE(differ(part(lines), part(other)));
}

TEST(MultipartBody, ThatIsBrokenIsComparedAsBytes) {
  const std::string good = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--\r\n";
  for (const std::string& broken :
       {std::string(), good.substr(0, good.size() - 9), std::string("--b\r\n--b--"),
        std::string("--b\r\nno colon\r\n\r\n1\r\n--b--"),
        std::string("--b\r\n a: folded\r\n\r\n--b--"), std::string("--b\r\na: 1\r\n\r\n--b--"),
        std::string("--b\na: 1\n\n1\n--b--\n")}) {
    EXPECT_TRUE(same(parts(broken), parts(broken)));
    EXPECT_TRUE(differ(parts(broken), parts(broken + " "))) << broken;
    EXPECT_TRUE(differ(parts(broken), parts(good))) << broken;
  }
  EXPECT_TRUE(differ(sent("multipart/form-data", good), sent("multipart/form-data", good + " ")));
  EXPECT_TRUE(differ(sent("multipart/form-data", good), parts(good)));
}

TEST(MultipartBody, OfAnotherSubtypeIsAnotherRequest) {
  const std::string body = "--b\r\n\r\n1\r\n--b--";
  EXPECT_TRUE(differ(parts(body), sent("multipart/mixed; boundary=b", body)));
  EXPECT_TRUE(same(sent("multipart/related; type=x; boundary=b", body),
                   sent("Multipart/Related; boundary=b; TYPE=\"x\"", body)));
}

}  // namespace
}  // namespace einmal
