import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Pushes files like the catalogue's sender: over TLS with HTTP/2 offered, one connection for all.
 * Arguments: root certificate, URL, user, password, "header" or "challenge", files. Prints a line for each answer.
 */
public class PushSender {
  public static void main(String[] words) throws Exception {
    URI uri = URI.create(words[1]);
    HttpClient.Builder builder = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_2)
        .connectTimeout(Duration.ofSeconds(30))
        .sslContext(trusting(Path.of(words[0])));
    boolean waitsForChallenge = words[4].equals("challenge");
    if (waitsForChallenge) {
      builder.authenticator(new Authenticator() {
        @Override
        protected PasswordAuthentication getPasswordAuthentication() {
          return new PasswordAuthentication(words[2], words[3].toCharArray());
        }
      });
    }
    HttpClient client = builder.build();
    String login = Base64.getEncoder().encodeToString((words[2] + ":" + words[3]).getBytes("UTF-8"));
    for (int i = 5; i < words.length; i += 1) {
      HttpRequest.Builder request = HttpRequest.newBuilder(uri)
          .timeout(Duration.ofSeconds(30))
          .header("Content-Type", "application/json")
          .POST(HttpRequest.BodyPublishers.ofFile(Path.of(words[i])));
      if (!waitsForChallenge) request.header("Authorization", "Basic " + login);
      HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
      System.out.println(response.version() + " " + response.statusCode() + " " + response.body());
    }
  }

  private static SSLContext trusting(Path root) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (var stream = Files.newInputStream(root)) {
      store.setCertificateEntry("root", CertificateFactory.getInstance("X.509").generateCertificate(stream));
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    return context;
  }
}
